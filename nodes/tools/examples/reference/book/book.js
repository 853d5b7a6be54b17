"use strict";
// Search, and the menu of contents on narrow screens.
(() => {
  const root = document.body.dataset.root, field = document.getElementById("search"), results = document.getElementById("results"), article = document.querySelector("article");
  const make = (tag, text) => { const element = document.createElement(tag); if (text !== undefined) element.textContent = text; return element; };
  let loading = null;
  const load = () => loading ||= new Promise((done, no) => { const script = make("script"); script.src = root + "search.js"; script.onload = done; script.onerror = no; document.head.append(script); });
  // Text in which the words searched for are marked.
  const marked = (text, words) => {
    const line = make("span"), found = new RegExp("(" + words.map(word => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|") + ")", "gi");
    text.split(found).forEach((part, at) => line.append(at % 2 ? make("mark", part) : part));
    return line;
  };
  // The score of a section: zero unless it has all words. Words in titles count more, and whole words more than parts.
  const score = ([page, title, , text], words) => {
    let sum = 0;
    for (const word of words) {
      const inTitle = title.toLowerCase().includes(word), inPage = page.toLowerCase().includes(word), body = text.toLowerCase(), at = body.indexOf(word);
      if (!inTitle && !inPage && at < 0) return 0;
      const isWhole = new RegExp("(^|[^\\w])" + word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "($|[^\\w])", "i");
      sum += (inTitle ? 20 : 0) + (inPage ? 5 : 0) + (at >= 0 ? Math.min(5, body.split(word).length - 1) : 0) + (isWhole.test(title) ? 20 : 0) + (isWhole.test(text) ? 4 : 0);
    }
    return sum;
  };
  const search = async () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length) await load();
    article.hidden = words.length > 0; results.hidden = !words.length; results.replaceChildren();
    if (!words.length) return;
    const found = window.sections.map(section => [score(section, words), section]).filter(([value]) => value > 0).sort((a, b) => b[0] - a[0]);
    results.append(make("h1", found.length ? `${found.length} sections` : "Nothing found"));
    for (const [, [page, title, link, text]] of found.slice(0, 40)) {
      const head = make("a", page === title ? page : `${page}: ${title}`); head.href = root + link;
      // A link to the same page only scrolls, so end the search.
      head.addEventListener("click", () => { field.value = ""; search(); });
      const at = Math.max(0, text.toLowerCase().indexOf(words[0]) - 70), line = make("p");
      line.append((at ? "..." : ""), marked(text.slice(at, at + 220), words), "...");
      results.append(head, line);
    }
  };
  field.addEventListener("focus", load);
  field.addEventListener("input", search);
  document.addEventListener("keydown", event => {
    if (event.key === "/" && document.activeElement !== field) { event.preventDefault(); document.body.classList.add("open"); field.focus(); }
    if (event.key === "Escape") { field.value = ""; search(); field.blur(); }
  });
  document.getElementById("menu").addEventListener("click", () => document.body.classList.toggle("open"));
  document.querySelector("#contents [aria-current]")?.scrollIntoView({ block: "nearest" });
})();
