-- Wireshark dissector of phitwire's link frames: BlackWidow (phits), Aries (sets of flits) and T3E (bursts of
-- flits), over Ethernet and UDP. docs/guide/src/wire-format.md explains every bit, docs/guide/src/capture.md this file.
--
-- The files beside this one are its parts: one for each machine, bits and checks, and phitwire_fields.lua, which says
-- where fields stand and is generated from the code.
-- Nothing here may stop with an error, whatever the bytes: what does not fit is an expert info.

local own_place = debug.getinfo(1, "S").source:match("^@(.*[/\\])") or ""
local function part(name, ...) return assert(loadfile(own_place .. name))(...) end
local F = part("phitwire_fields.lua")
local bits_of = part("phitwire_bits.lua")

local floor, format, byte = math.floor, string.format, string.byte
local be, bits, u64, int, crc32c = bits_of.be, bits_of.bits, bits_of.u64, bits_of.int, bits_of.crc32c

local phitwire = Proto("phitwire", "phitwire link frame")

-- ---- Fields --------------------------------------------------------------------------------------------------

local KINDS = { [F.kinds.data] = "data", [F.kinds.training] = "training", [F.kinds.sets] = "sets", [F.kinds.bursts] = "bursts" }
local ENDS = { [0] = "A", [1] = "B" }
local VERDICTS = { [0] = "bad", [1] = "good", [2] = "not checked" }
local STATES = { [0] = "disabled", "training", "refused", "active", "dead" }
local STATUSES = { [0] = "normal", "retry request", "probe" }
local PHITS = { [0] = "idle", "head", "body", "EOP" }
local OK = { [0] = "healthy", "transmit_error", "soft_error", "reserved" }
local FLITS = { [0] = "idle", "request, VC0", "request, VC1", "response, VC0", "response, VC1", "adaptive", "barrier", "maintenance" }
local RATES = { [0] = "6.25 Gb/s", "5.0 Gb/s", "3.125 Gb/s", "2.5 Gb/s", "1.5625 Gb/s", "1.25 Gb/s",
    "14 Gb/s", "12.5 Gb/s", "39.8 Gb/s", [14] = "1.75 Gb/s" }

local f = {}
local order = {}
local function field(name, kind, title, ...)
  local made = ProtoField[kind]("phitwire." .. name:gsub("__", "."), title, ...)
  f[name] = made
  order[#order + 1] = made
end

field("magic", "uint8", "Magic", base.HEX)
field("version", "uint8", "Version")
field("kind", "uint8", "Kind", base.DEC, KINDS)
field("end", "uint8", "End that sends", base.DEC, ENDS)
field("link", "uint16", "Link")
field("fabric", "uint32", "Fabric", base.HEX)
field("tx_epoch", "uint32", "Epoch of the sender", base.HEX)
field("rx_epoch", "uint32", "Epoch of the receiver", base.HEX)
field("lanes", "uint16", "Lanes", base.HEX)
field("units", "uint16", "Phits, sets or bursts")
field("check", "uint32", "Header check", base.HEX)
field("check__status", "uint8", "Header check is", base.DEC, VERDICTS)
-- What the link control blocks of all machines exchange.
field("lcb__seq", "uint64", "Number of the first packet, set or burst")
field("lcb__ack", "uint64", "Next one expected: acknowledged is all before it")
field("lcb__offset", "uint8", "Phits of the first packet sent before")
field("lcb__pass", "uint16", "Pass: how often the sender has gone back")
field("lcb__status", "uint8", "Status", base.DEC, STATUSES)
field("lcb__request", "bool", "Something is asked for again")
field("lcb__probe", "bool", "An answer is wanted at once")
field("lcb__vc_ack", "uint32", "VC ack: freed so far")
field("lcb__word__status", "uint8", "Control word's check is", base.DEC, VERDICTS)
field("lcb__words__bad", "uint16", "Copies of the control word with a wrong check")
field("lcb__ack_only", "bool", "Carries no packets, only link control")
field("lcb__retry", "bool", "Carries what was sent before")
field("lcb__retries", "uint32", "Packets, sets or bursts sent again")
field("lcb__retry_of", "framenum", "Sent before in frame", base.NONE, frametype and frametype.RETRANS_PREV or nil)
field("lcb__retried_in", "framenum", "Sent again in frame", base.NONE, frametype and frametype.RETRANS_NEXT or nil)
field("lcb__late", "bool", "Left before the sender went back, and comes late")
field("lcb__duplicate", "bool", "A copy that the network made")
field("lcb__missing_before", "uint64", "Numbers missing before this frame")
-- Training.
field("training__state", "uint8", "State", base.DEC, STATES)
field("training__heard", "bool", "The other end is heard")
field("training__rx_lanes", "uint8", "Lanes that it receives on", base.HEX)
field("training__port", "uint8", "Port")
field("training__expect_port", "uint8", "Port expected at the other end")
field("training__max_packet", "uint8", "Longest packet, phits or flits")
field("training__rate", "uint8", "Lane rate", base.DEC, RATES)
field("training__window", "uint16", "Window, packets or sets")
field("training__credits", "uint32", "Credits offered")
field("training__node", "string", "Node")
field("training__expect_node", "string", "Node expected at the other end")
field("training__pattern", "bytes", "Lane pattern")
-- Phits, sets, bursts.
field("phit", "uint32", "Phit", base.HEX)
field("phit__kind", "uint8", "Kind of the phit", base.DEC, PHITS)
field("set__number", "uint32", "Number of the set")
field("set__control", "bool", "Link control")
field("set__ack", "uint8", "Ack, six bits")
field("set__nack", "bool", "Nack")
field("set__load", "uint8", "Load behind the sender")
field("set__clock", "bool", "Pulse of the global clock")
field("set__vc_ack", "uint8", "VC ack, blocks of eight flits")
field("set__crc", "uint24", "CRC-20", base.HEX)
field("set__crc__status", "uint8", "CRC-20 is", base.DEC, VERDICTS)
field("set__missing_from", "uint16", "Missing from, behind ack")
field("set__missing", "uint16", "Missing sets")
field("set__time", "uint64", "Global clock, ns")
field("set__flit", "uint64", "Flit", base.HEX)
field("burst__number", "uint64", "Number of the burst")
field("burst__check", "uint32", "CRC-32C", base.HEX)
field("burst__check__status", "uint8", "CRC-32C is", base.DEC, VERDICTS)
field("burst__flits", "uint8", "Flits that are not idle")
field("burst__flit", "uint64", "Flit", base.HEX)
field("burst__credit", "uint8", "Credit returned", base.DEC, FLITS)
-- Packets, put together over frames.
field("packet__number", "uint64", "Number on the link")
field("packet__dest", "uint32", "Destination")
field("packet__dest_name", "string", "Destination, by parts")
field("packet__source", "uint32", "Source")
field("packet__source_name", "string", "Source, by parts")
field("packet__command", "string", "Command")
field("packet__opcode", "uint8", "Command's code", base.HEX)
field("packet__address", "uint64", "Address", base.HEX)
field("packet__size", "uint16", "Bytes of data")
field("packet__data", "bytes", "Data")
field("packet__vc", "uint8", "Virtual channel")
field("packet__response", "bool", "Response")
field("packet__id", "uint32", "Name of the request")
field("packet__length", "uint8", "Phits or flits")
field("packet__status", "string", "How the request went")
field("packet__ok", "uint8", "Mark", base.DEC, OK)
field("packet__poisoned", "bool", "Marked as damaged")
field("packet__adaptive", "bool", "Routed adaptively")
field("packet__hashed", "bool", "The hash takes in the hash bits")
field("packet__source_routed", "bool", "Source-routed")
field("packet__non_minimal", "bool", "On a non-minimal way")
field("packet__routing", "string", "Routing")
field("packet__mdh", "uint16", "Memory domain handle", base.HEX)
field("packet__key", "uint16", "Protection key", base.HEX)
field("packet__ssid", "uint8", "SSID")
field("packet__echo", "uint8", "Echo")
field("packet__register", "uint16", "Register", base.HEX)
field("packet__crc", "uint16", "Packet check", base.HEX)
field("packet__crc__status", "uint8", "Packet check is", base.DEC, VERDICTS)
field("packet__retry", "bool", "Sent before")
field("packet__begins_in", "framenum", "Begins in frame")
field("packet__incomplete", "bool", "Its beginning was not captured")
phitwire.fields = order

local e = {}
local experts = {}
local function expert(name, text, group, severity)
  e[name] = ProtoExpert.new("phitwire." .. name .. ".expert", text, group, severity)
  experts[#experts + 1] = e[name]
end
expert("malformed", "Malformed", expert_group and expert_group.MALFORMED or PI_MALFORMED, PI_ERROR)
expert("bad_check", "The check is wrong", PI_CHECKSUM, PI_ERROR)
expert("retry", "Sent before: a retry", PI_SEQUENCE, PI_NOTE)
expert("retry_request", "Something is asked for again", PI_SEQUENCE, PI_NOTE)
expert("epoch", "Another epoch: a new session", PI_SEQUENCE, PI_NOTE)
expert("out_of_order", "Out of order", PI_SEQUENCE, PI_WARN)
expert("marked", "Marked as damaged", PI_SEQUENCE, PI_WARN)
phitwire.experts = experts

phitwire.prefs.units = Pref.bool("Show every phit and flit", false, "An item of its own for each phit, flit of a set, and flit of a burst")
phitwire.prefs.scrambling = Pref.bool("Sets are scrambled by the seeds of the registers' defaults", true, "Off: by none; sets that are right without are taken so in any case")

-- ---- What is known of a direction of a link ------------------------------------------------------------------

-- By interface, link and end: its sessions, and the one that was seen last.
local directions = {}
-- By frame and place in it: what was found there when it was first seen.
local found = {}

function phitwire.init()
  directions, found = {}, {}
end

-- Numbers further behind than any window are forgotten.
local REMEMBERED = 65536

local function session_of(key, h)
  local direction = directions[key]
  if not direction then
    direction = { sessions = {} }
    directions[key] = direction
  end
  local name = format("%d.%d", h.tx_epoch, h.rx_epoch)
  local session = direction.sessions[name]
  local is_new = direction.last ~= nil and direction.last ~= name and not session
  if not session then
    session = { first = {}, count = 0, high = nil }
    direction.sessions[name] = session
  end
  if is_new or not direction.last then direction.last = name end
  return session, is_new
end

-- Unit `number` leaves in frame `A.frame`: whether it left before, and where first.
local function leaves(session, number, A, is_again)
  local first = session.first[number]
  if is_again then
    A.retries = (A.retries or 0) + 1
    if first and first ~= A.frame then
      A.retry_of = A.retry_of or {}
      A.retry_of[first] = true
      local before = found[first]
      if before then
        for _, other in pairs(before) do
          other.retried_in = other.retried_in or {}
          other.retried_in[A.frame] = true
        end
      end
    end
  end
  if not first then
    session.first[number] = A.frame
    session.count = session.count + 1
    if session.count > 2 * REMEMBERED then
      for old in pairs(session.first) do
        if old < number - REMEMBERED then
          session.first[old] = nil
          session.count = session.count - 1
        end
      end
    end
  end
end

local function problem(A, kind, text, at, length)
  A.problems[#A.problems + 1] = { kind = kind, text = text, at = at, length = length }
end
-- ---- The machines ----------------------------------------------------------------------------------------------

local K = {
  F = F, xor = bits_of.xor, be = be, bits = bits, int = int, crc32c = crc32c, crc_of = bits_of.crc_of, stream = bits_of.stream,
  hex_of = bits_of.hex_of, problem = problem, leaves = leaves, REMEMBERED = REMEMBERED, prefs = phitwire.prefs, OK = OK, FLITS = FLITS,
}
local blackwidow = part("phitwire_blackwidow.lua", K)
local aries = part("phitwire_aries.lua", K)
local t3e = part("phitwire_t3e.lua", K)

-- ---- Any frame -----------------------------------------------------------------------------------------------

local function training_frame(s, A, h)
  local T = F.training
  A.checked, A.area = T.check[1], T.pattern[1]
  if #s < T.bytes then return problem(A, "malformed", format("a training frame has %d bytes, here are %d", T.bytes, #s)) end
  A.length = T.bytes
  if h.units ~= 0 then problem(A, "malformed", "a training frame with units", 18, 2) end
  A:check_header(s)
  local function name(at)
    local text = s:sub(at[1] + 1, at[1] + at[2])
    return (text:match("^[^%z]*") or ""):gsub("[^\32-\126]", "?")
  end
  A.training = {
    state = be(s, T.state[1], 1), rx_lanes = be(s, T.rx_lanes[1], 1), node = name(T.node), expect_node = name(T.expect_node),
  }
end

local READERS = { [F.kinds.data] = blackwidow.read, [F.kinds.training] = training_frame, [F.kinds.sets] = aries.read, [F.kinds.bursts] = t3e.read }

local Analysis = {}
Analysis.__index = Analysis

-- Whether the check in front of what the lanes carry is right.
function Analysis:check_header(s, covered)
  covered = covered or s:sub(1, self.checked)
  self.check = be(s, self.checked, 4)
  local right = crc32c(covered, 0, #covered)
  self.check_status = right == self.check and 1 or 0
  if self.check_status == 0 then
    problem(self, "bad_check", format("header check %08x, should be %08x", self.check, right), self.checked, 4)
  end
  return self.check_status == 1
end

function Analysis:session(key, h)
  local session, is_new = session_of(key, h)
  if is_new then problem(self, "epoch", format("a new session: epochs %#x and %#x", h.tx_epoch, h.rx_epoch), 8, 8) end
  return session
end

local function header_of(s)
  local H = F.header
  local kind = byte(s, F.kind_at + 1)
  local function part(at) return be(s, at[1], at[2]) end
  local lanes = part(H.lanes)
  return {
    version = floor(kind / 16), kind = floor(kind / 2) % 8, ["end"] = kind % 2, link = part(H.link), fabric = part(H.fabric),
    tx_epoch = part(H.tx_epoch), rx_epoch = part(H.rx_epoch), lanes = lanes, units = part(H.units),
  }
end

-- What a frame says, and what follows from those before it.
local function analyse(s, frame, interface)
  local A = setmetatable({ frame = frame, problems = {}, packets = {}, length = #s }, Analysis)
  if #s < F.plain_at then
    problem(A, "malformed", format("%d bytes are no frame", #s))
    return A
  end
  local h = header_of(s)
  A.header = h
  if h.version ~= F.version then
    problem(A, "malformed", format("version %d; this dissector reads version %d", h.version, F.version), 1, 1)
    return A
  end
  if h.lanes > 7 then problem(A, "malformed", "reserved bits of the lanes are set", 16, 2) end
  if h.lanes % 8 == 0 then problem(A, "malformed", "no lane carries this frame", 16, 2) end
  local read = READERS[h.kind]
  if not read then
    problem(A, "malformed", format("no machine known here has frames of kind %d", h.kind), 1, 1)
    return A
  end
  read(s, A, h, format("%d.%d.%d.%d", interface, h.fabric, h.link, h["end"]))
  A.ack_only = h.kind ~= F.kinds.training and A.check_status == 1 and not A.has_units
  return A
end

-- ---- The tree ------------------------------------------------------------------------------------------------

local function range(tvb, at, length)
  local all = tvb:len()
  at = math.min(at or 0, all)
  length = math.max(0, math.min(length or all - at, all - at))
  return tvb(at, length)
end

local function mark(tree, name, value)
  if value ~= nil then tree:add(f[name], value):set_generated() end
end

local function sorted(set)
  local all = {}
  for value in pairs(set or {}) do all[#all + 1] = value end
  table.sort(all)
  return all
end

local function show_header(tree, tvb, A)
  local h, H = A.header, F.header
  tree:add(f.magic, range(tvb, 0, 1))
  tree:add(f.version, range(tvb, 1, 1), h.version)
  tree:add(f.kind, range(tvb, 1, 1), h.kind)
  tree:add(f["end"], range(tvb, 1, 1), h["end"])
  for _, name in ipairs({ "link", "fabric", "tx_epoch", "rx_epoch", "lanes", "units" }) do
    tree:add(f[name], range(tvb, H[name][1], H[name][2]))
  end
  if A.check then
    tree:add(f.check, range(tvb, A.checked, 4))
    mark(tree, "check__status", A.check_status)
  end
end

local function show_link_control(tree, A)
  if A.seq == nil and A.word_status == nil then return end
  local lcb = tree:add(phitwire, range(A.tvb, 0, A.area), "Link control")
  if A.word_status then
    mark(lcb, "lcb__word__status", A.word_status)
    mark(lcb, "lcb__words__bad", A.words_bad)
  end
  mark(lcb, "lcb__seq", A.seq and u64(A.seq))
  mark(lcb, "lcb__offset", A.offset)
  mark(lcb, "lcb__ack", A.ack and u64(A.ack))
  mark(lcb, "lcb__pass", A.pass)
  mark(lcb, "lcb__status", A.status)
  for vc, freed in ipairs(A.vc_acks or {}) do
    lcb:add(f.lcb__vc_ack, freed):set_text(format("VC ack %d: %s", vc - 1, int(freed))):set_generated()
  end
  -- Only where they are true: the name alone is a filter.
  for _, name in ipairs({ "request", "probe", "ack_only", "late", "duplicate" }) do mark(lcb, "lcb__" .. name, A[name] or nil) end
  if A.missing_before then mark(lcb, "lcb__missing_before", u64(A.missing_before)) end
  if A.retries then
    local item = lcb:add(f.lcb__retry, true):set_generated()
    item:add_proto_expert_info(e.retry, format("%d of what this frame carries was sent before", A.retries))
    mark(lcb, "lcb__retries", A.retries)
    for _, first in ipairs(sorted(A.retry_of)) do mark(lcb, "lcb__retry_of", first) end
  end
  for _, later in ipairs(sorted(A.retried_in)) do mark(lcb, "lcb__retried_in", later) end
  if A.request then lcb:add_proto_expert_info(e.retry_request) end
end

local function show_training(tree, tvb, A)
  local T, at = F.training, F.training
  if not A.training then return end
  local sub = tree:add(phitwire, range(tvb, T.state[1], T.check[1] - T.state[1]), "Training")
  local function plain(name) sub:add(f["training__" .. name], range(tvb, at[name][1], at[name][2])) end
  plain("state")
  local lanes = range(tvb, T.rx_lanes[1], 1)
  sub:add(f.training__heard, lanes, A.training.rx_lanes >= 128)
  sub:add(f.training__rx_lanes, lanes, A.training.rx_lanes % 8)
  for _, name in ipairs({ "port", "expect_port", "max_packet", "rate", "window" }) do plain(name) end
  sub:add(f.training__credits, range(tvb, T.credits0[1], 4))
  sub:add(f.training__credits, range(tvb, T.credits1[1], 4))
  sub:add(f.training__node, range(tvb, T.node[1], T.node[2]), A.training.node)
  sub:add(f.training__expect_node, range(tvb, T.expect_node[1], T.expect_node[2]), A.training.expect_node)
  sub:add(f.training__pattern, range(tvb, T.pattern[1], T.pattern[2]))
end

local function show_phits(tree, tvb, A)
  if not A.kinds or not phitwire.prefs.units then return end
  local sub = tree:add(phitwire, range(tvb, A.area), "Phits")
  for i = 0, A.header.units - 1 do
    local at = range(tvb, A.area + 3 * i, 3)
    local item = sub:add(f.phit, at)
    item:set_text(format("Phit %d: %s, %06x", i, PHITS[A.kinds[i]], at:uint()))
    item:add(f.phit__kind, at, A.kinds[i])
  end
end

local function show_sets(tree, tvb, A)
  for i, S in ipairs(A.sets or {}) do
    local at = range(tvb, S.at, F.aries.set_bytes)
    local what = S.status == 0 and "damaged" or S.control and "link control" or format("number %s", int(S.full or 0))
    local sub = tree:add(phitwire, at, format("Set %d: %s%s", i - 1, what, S.retry and ", sent before" or ""))
    mark(sub, "set__crc", S.crc)
    mark(sub, "set__crc__status", S.status)
    if S.status == 1 then
      mark(sub, "set__control", S.control)
      mark(sub, "set__number", S.full or S.next)
      for _, name in ipairs({ "ack", "nack", "load", "clock", "vc_ack" }) do mark(sub, "set__" .. name, S[name]) end
      if S.control then
        mark(sub, "set__missing_from", S.missing_from)
        mark(sub, "set__missing", S.missing)
        mark(sub, "set__time", u64(S.time))
      end
      if phitwire.prefs.units and not S.control then
        local set = aries.read_set(A.bytes, S.at, A.header.lanes % 8)
        for n = 0, F.aries.data_flits - 1 do
          sub:add(f.set__flit, range(tvb, S.at + 6 * n, 6), u64(be(set, 6 * n, 6)))
        end
      end
    end
  end
end

local function show_bursts(tree, tvb, A)
  for _, B in ipairs(A.bursts or {}) do
    local at = range(tvb, B.at, F.t3e.burst_bytes + F.check_bytes)
    local sub = tree:add(phitwire, at, format("Burst %s%s", int(B.number), B.retry and ": sent before" or ""))
    mark(sub, "burst__number", u64(B.number))
    sub:add(f.burst__check, range(tvb, B.at + F.t3e.burst_bytes, 4))
    mark(sub, "burst__check__status", B.status)
    mark(sub, "burst__flits", B.busy)
    if phitwire.prefs.units and B.status == 1 then
      for index = 0, F.t3e.burst_flits - 1 do
        local flit = t3e.read_flit(A.bytes, B.at, index)
        local item = sub:add(f.burst__flit, UInt64.new(flit.lo, flit.hi))
        item:set_text(format("Flit %d: %s, %08x%08x", index, FLITS[flit.kind], flit.hi, flit.lo)):set_generated()
        if flit.credit > 0 then mark(item, "burst__credit", flit.credit) end
      end
    end
  end
end

local WIDE = { number = true, address = true }
local SHOWN = {
  "number", "dest", "dest_name", "source", "source_name", "command", "opcode", "address", "size", "vc", "response", "id",
  "length", "status", "ok", "poisoned", "adaptive", "hashed", "source_routed", "non_minimal", "routing", "mdh", "key", "ssid",
  "echo", "register", "crc", "incomplete",
}

local function packet_text(P)
  local text = P.command or "packet"
  if P.dest then text = text .. " to " .. (P.dest_name or int(P.dest)) end
  if P.address then text = text .. format(" at %#x", P.address) end
  if P.size and P.size > 0 then text = text .. format(", %d bytes", P.size) end
  if P.summary then text = text .. ": " .. P.summary end
  if P.status and P.status ~= "done" then text = text .. ": " .. P.status end
  return text
end

local function show_packets(tree, tvb, A)
  for _, P in ipairs(A.packets) do
    local sub = tree:add(phitwire, range(tvb, A.area), "Packet: " .. packet_text(P))
    sub:set_generated()
    for _, name in ipairs(SHOWN) do
      local value = P[name]
      if value ~= nil then mark(sub, "packet__" .. name, WIDE[name] and u64(value) or value) end
    end
    mark(sub, "packet__retry", P.retry or nil)
    if P.crc_status then mark(sub, "packet__crc__status", P.crc_status) end
    if P.data and #P.data > 0 then
      local data = ByteArray.new(P.data, true):tvb("Data of a packet")
      sub:add(f.packet__data, data())
    end
    if P.begins_in and P.begins_in ~= A.frame then mark(sub, "packet__begins_in", P.begins_in) end
  end
end

local function summary(A)
  local h = A.header
  if not h then return "too short" end
  local text = KINDS[h.kind] or format("kind %d", h.kind)
  if A.training then
    return format("training: %s, %s -> %s", STATES[A.training.state] or "unknown state", A.training.node, A.training.expect_node)
  end
  if A.seq and A.has_units then text = text .. format(" %s", int(A.seq)) end
  if A.ack then text = text .. format(" ack %s", int(A.ack)) end
  if A.ack_only then text = text:gsub("^%a+ ", "") end
  if A.request then text = text .. " [retry request]" end
  if A.probe then text = text .. " [probe]" end
  if A.retries then text = text .. format(" [%d resent]", A.retries) end
  for i, P in ipairs(A.packets) do
    if i > 3 then
      text = text .. format(" | and %d more", #A.packets - 3)
      break
    end
    text = text .. " | " .. packet_text(P)
  end
  local worst = nil
  for _, what in ipairs(A.problems) do
    if what.kind == "malformed" or what.kind == "bad_check" then worst = worst or what.text end
  end
  return worst and text .. " [" .. worst .. "]" or text
end

local interface_id = Field.new("frame.interface_id")

-- Dissects the frame at the beginning of `tvb`; how many bytes it has.
local function one_frame(tvb, pinfo, root, at)
  local s = tvb:raw()
  local id = interface_id()
  local of_frame = found[pinfo.number]
  if not of_frame then
    of_frame = {}
    found[pinfo.number] = of_frame
  end
  local A = of_frame[at]
  if not A then
    A = analyse(s, pinfo.number, id and id.value or 0)
    of_frame[at] = A
  end
  A.tvb, A.bytes = tvb, s
  local tree = root:add(phitwire, range(tvb, 0, A.length))
  local text = summary(A)
  tree:append_text(": " .. text)
  if A.header then
    show_header(tree, tvb, A)
    show_link_control(tree, A)
    show_training(tree, tvb, A)
    show_phits(tree, tvb, A)
    show_sets(tree, tvb, A)
    show_bursts(tree, tvb, A)
    show_packets(tree, tvb, A)
  end
  for _, what in ipairs(A.problems) do
    if e[what.kind] then tree:add_proto_expert_info(e[what.kind], what.text) end
  end
  -- Not kept: they would keep the bytes of the whole capture.
  A.tvb, A.bytes = nil, nil
  return A.length, text
end

function phitwire.dissector(tvb, pinfo, root)
  if tvb:len() == 0 or tvb(0, 1):uint() ~= F.magic then return 0 end
  pinfo.cols.protocol = "PHITWIRE"
  local at, texts = 0, {}
  -- A train of datagrams that segmentation offload keeps in one piece has several.
  while at < tvb:len() and #texts < 256 do
    if at > 0 and tvb(at, 1):uint() ~= F.magic then break end
    local rest = tvb(at):tvb()
    local length, text = one_frame(rest, pinfo, root, at)
    texts[#texts + 1] = text
    at = at + math.max(length, 1)
  end
  pinfo.cols.info = table.concat(texts, " || "):sub(1, 500)
  return math.min(at, tvb:len())
end

DissectorTable.get("ethertype"):add(F.ethertype, phitwire)
DissectorTable.get("udp.port"):add(F.udp_port, phitwire)
-- Loopback labs have ports of their own.
phitwire:register_heuristic("udp", function(tvb, pinfo, root)
  if tvb:len() < F.plain_at or tvb(0, 1):uint() ~= F.magic or floor(tvb(1, 1):uint() / 16) ~= F.version then return false end
  phitwire.dissector(tvb, pinfo, root)
  return true
end)
