-- Aries for the dissector of phitwire's link frames: packets of flits in sets. docs/guide/src/wire-format.md, sections 12 to 17.

local K = ...
-- Wireshark runs every file of a plug-in folder; this one is run by phitwire.lua, which hands over what it needs.
if type(K) ~= "table" then return end
local F, be, bits, int = K.F, K.be, K.bits, K.int
local problem, leaves = K.problem, K.leaves
local floor, format, byte = math.floor, string.format, string.byte
local xor, prefs, REMEMBERED = K.xor, K.prefs, K.REMEMBERED
local set_crc, set_crc_bit = K.crc_of(F.aries.crc20_bits, F.aries.crc20_polynomial)
local flit_crc = K.crc_of(16, F.aries.packet_polynomial)

-- What scrambling lays over a set, by the lanes in use.
local patterns = {}
local function pattern_of(lanes)
  if patterns[lanes] then return patterns[lanes] end
  local used = {}
  for lane = 0, F.lanes - 1 do
    if floor(lanes / 2 ^ lane) % 2 == 1 then used[#used + 1] = lane end
  end
  local states, pattern = {}, {}
  for _, lane in ipairs(used) do states[lane] = F.aries.scrambler_seeds[lane + 1] % 2 ^ 15 end
  for word = 0, F.aries.set_bytes / F.word_bytes - 1 do
    local value = 0
    for index, lane in ipairs(used) do
      local state = states[lane]
      for place = F.word_bits - 1, 0, -1 do
        if place % #used == index - 1 then
          local next_bit = (floor(state / 2 ^ 14) + floor(state / 2 ^ 13)) % 2
          state = (state * 2 + next_bit) % 2 ^ 15
          value = value + next_bit * 2 ^ place
        end
      end
      states[lane] = state
    end
    for i = 0, 2 do pattern[3 * word + i + 1] = floor(value / 256 ^ (2 - i)) % 256 end
  end
  patterns[lanes] = pattern
  return pattern
end

local function set_is_right(set)
  local A = F.aries
  local crc, whole = A.crc20_initial, floor((8 * A.set_bytes - A.crc20_bits) / 8)
  for i = 1, whole do crc = set_crc(crc, byte(set, i)) end
  local rest = byte(set, whole + 1)
  for n = 7, 8 - (8 * A.set_bytes - A.crc20_bits) % 8, -1 do crc = set_crc_bit(crc, floor(rest / 2 ^ n) % 2) end
  return crc == be(set, A.set_bytes - 3, 3) % 2 ^ A.crc20_bits, crc
end

-- The bytes of a set as they were before they were scrambled, and whether its check is right.
local function read_set(s, at, lanes)
  local raw = s:sub(at + 1, at + F.aries.set_bytes)
  if not prefs.scrambling then return raw, set_is_right(raw) end
  local pattern, bytes = pattern_of(lanes), {}
  for i = 1, #raw do bytes[i] = xor(byte(raw, i), pattern[i]) % 256 end
  local set = string.char(table.unpack(bytes))
  local right = set_is_right(set)
  if not right and set_is_right(raw) then return raw, true end
  return set, right
end

local CLASSES = { [0] = "put", "get", "atomic", "fetching atomic", "atomic of 32 bits", "fetching atomic of 32 bits", "message", "control" }

local function node_name(id)
  local N = F.aries.node
  return format("(%d,%d,%d)", bits(id, N.group), bits(id, N.router), bits(id, N.nic))
end

-- The bytes of a packet, each flit six of them.
local function flit_bytes(flits)
  local text = {}
  for i, flit in ipairs(flits) do
    local six = {}
    for n = 1, 6 do six[n] = floor(flit / 256 ^ (6 - n)) % 256 end
    text[i] = string.char(table.unpack(six))
  end
  return table.concat(text)
end

local function aries_area(A, P, flits, data_from)
  local H, text = F.aries.head, flit_bytes(flits)
  local crc = F.aries.packet_initial
  -- What routers write is not covered.
  local head = flits[1] % 2 ^ H.non_minimal[1] - bits(flits[1], H.poisoned) * 2 ^ H.poisoned[1]
  local covered = flit_bytes({ head }) .. text:sub(7, #text - 2)
  for i = 1, #covered do crc = flit_crc(crc, byte(covered, i)) end
  P.crc = be(text, #text - 2, 2)
  P.crc_status = crc == P.crc and 1 or 0
  if P.crc_status == 0 then problem(A, "bad_check", format("packet: CRC %04x, should be %04x", P.crc, crc)) end
  return text:sub(6 * data_from + 1, #text - 2)
end

local function aries_request(A, P, flits)
  local R = F.aries.request
  local function part(at) return bits(flits[at[1] + 1] or 0, { at[2], at[3] }) end
  local class = part(R.command_high) * 4 + floor(P.code / 16)
  local argument = P.code % 16
  P.opcode = class * 16 + argument
  P.command = CLASSES[class]
  P.source = part(R.source)
  P.source_name = node_name(P.source)
  P.mdh, P.echo, P.ssid, P.key = part(R.mdh), part(R.echo), part(R.ssid), part(R.key)
  P.address = part(R.address_high) * 2 ^ 32 + part(R.address_low)
  local area = #flits > 3 and aries_area(A, P, flits, 3) or ""
  P.size = #area
  if class == 1 then P.size = 4 * (argument + 1) end
  if class >= 2 and class <= 5 then
    P.command = format("%s %s", CLASSES[class], F.aries.operations[argument] or "reserved")
    local width = class < 4 and 8 or 4
    P.size = (argument == 4 or argument == 6) and 2 * width or width
  elseif class == 0 or class == 6 then
    P.size = math.max(0, #area - argument % 6)
  end
  if #area > 0 then P.data = area:sub(1, P.size) end
end

local function aries_packet(A, open)
  local H, flits = F.aries.head, open.flits
  local head = flits[1]
  local P = { length = #flits, begins_in = open.frame, retry = open.retry, set = open.set }
  A.packets[#A.packets + 1] = P
  P.vc, P.dest = bits(head, H.vc), bits(head, H.destination)
  P.dest_name, P.non_minimal = node_name(P.dest), bits(head, H.non_minimal) == 1
  P.id, P.code = bits(head, H.packet_id), bits(head, H.code)
  local mode = bits(head, H.routing)
  -- The upper half of the ids has the hash of a cache line: modes 4 and 5 with the address.
  if (mode == 4 or mode == 5) and P.id >= 2048 then mode = mode + 4 end
  P.routing = F.aries.routings[mode]
  P.poisoned, P.response = bits(head, H.poisoned) == 1, bits(head, H.vc) >= F.aries.first_response_vc
  if P.poisoned then problem(A, "marked", "a packet is marked as damaged") end
  if not P.response then
    if #flits < 3 then return problem(A, "malformed", format("a request of %d flits", #flits)) end
    return aries_request(A, P, flits)
  end
  local short = 2 ^ F.aries.echo_bits
  P.echo, P.opcode = P.code % short, P.code
  P.command, P.status, P.size = "response", "done", 0
  if #flits > 1 then
    local area = aries_area(A, P, flits, 1)
    if P.code < short then
      P.size, P.data = #area - #area % 4, area:sub(1, #area - #area % 4)
    elseif #flits == 2 then
      P.command, P.status = "refusal", F.aries.status[be(area, 0, 4)] or "reserved"
    elseif (#flits - 1) % 2 == 0 then
      P.command, P.data = "response to several", area
    else
      local words = floor((#area - 4) / 4) * 4
      P.size, P.data = words, area:sub(1, words)
    end
  end
end

-- Takes the nine flits of a data set behind what was open before it.
local function take_flits(A, set, before, number, again)
  local H, open, synchronised = F.aries.head, before.open, before.synchronised
  if open then
    -- A copy: the same set may leave again.
    open = { flits = { table.unpack(open.flits) }, length = open.length, frame = open.frame, set = open.set, retry = open.retry }
  end
  for i = 0, F.aries.data_flits - 1 do
    local flit = be(set, 6 * i, 6)
    if open then
      open.flits[#open.flits + 1] = flit
    elseif flit == 0 then
      synchronised = true
    elseif synchronised then
      local length = bits(flit, H.length)
      if length == 0 or length > F.aries.max_packet_flits then
        problem(A, "malformed", format("set %s, flit %d: no packet has %d flits", int(number), i, length))
        synchronised = false
      else
        open = { flits = { flit }, length = length, frame = A.frame, set = number }
      end
    end
    if open and #open.flits >= open.length then
      open.retry = again
      aries_packet(A, open)
      open = nil
    end
  end
  return { open = open, synchronised = synchronised }
end

local function control_set(A, set, S)
  local C = F.aries.control
  S.next, S.ack_full = be(set, C.next[1], 4), be(set, C.ack[1], 4)
  S.probe = be(set, C.flags, 1) % 2 == 1
  S.missing_from, S.missing = be(set, C.missing_from[1], 2), be(set, C.missing[1], 2)
  S.time = be(set, C.clock[1], 6)
  S.vc_acks = {}
  for vc = 0, F.aries.vcs - 1 do S.vc_acks[vc + 1] = be(set, C.vc_acks + 4 * vc, 4) end
  if S.next % 128 ~= S.number or S.ack_full % 64 ~= S.ack then
    problem(A, "malformed", "the tenth flit of a control set contradicts the other nine", S.at, F.aries.set_bytes)
  end
end

-- The full number of a set, of which only seven bits are sent: the one nearest to the expected number.
local function near(expected, low)
  local number = expected - expected % 128 + low
  if number > expected + 63 then number = number - 128 elseif number < expected - 64 then number = number + 128 end
  return math.max(number, low)
end

local function data_set(A, set, S, session, number)
  if number == nil then
    number = near(session.high or S.number, S.number)
  elseif number % 128 ~= S.number then
    problem(A, "malformed", format("set number %d where %s is due", S.number, int(number)), S.at, F.aries.set_bytes)
  end
  S.full, A.has_units = number, true
  A.seq = A.seq or number
  local high = session.high
  if high and number > high then
    A.missing_before = (A.missing_before or 0) + number - high
    problem(A, "out_of_order", format("%s sets before set %s were not seen", int(number - high), int(number)))
  end
  S.retry = high ~= nil and number < high
  leaves(session, number, A, S.retry)
  session.high = math.max(high or 0, number + 1)
  session.before = session.before or {}
  local before = session.before[number] or { synchronised = number == 0 }
  local after = take_flits(A, set, before, number, S.retry)
  session.before[number + 1] = after
  session.before[number - 2 * REMEMBERED] = nil
  return number + 1
end

local function set_frame(s, A, h, key)
  local R, n = F.aries, h.units
  A.checked, A.area = F.header_bytes, R.sets_at
  if n == 0 or n > R.max_sets then
    return problem(A, "malformed", format("%d sets: a frame has 1 to %d", n, R.max_sets), 18, 2)
  end
  if #s < A.area + R.set_bytes * n then
    return problem(A, "malformed", format("a frame of %d sets has %d bytes, here are %d", n, A.area + R.set_bytes * n, #s))
  end
  A.length = A.area + R.set_bytes * n
  if not A:check_header(s) then return end
  local session, T, number = A:session(key, h), R.tenth, nil
  A.sets = {}
  for i = 0, n - 1 do
    local at = A.area + R.set_bytes * i
    local set, right = read_set(s, at, h.lanes % 8)
    local tenth = be(set, R.set_bytes - 6, 6)
    local S = { at = at, status = right and 1 or 0, crc = bits(tenth, T.crc) }
    A.sets[i + 1] = S
    if not right then
      problem(A, "bad_check", format("set %d of the frame: CRC-20 %05x, should be %05x", i, S.crc, select(2, set_is_right(set))), at, R.set_bytes)
      if number then number = number + 1 end
    else
      S.control = bits(tenth, T.control) == 1
      S.number = bits(tenth, T.number) + 64 * bits(tenth, T.odd)
      S.ack, S.nack, S.load = bits(tenth, T.ack), bits(tenth, T.nack) == 1, bits(tenth, T.load)
      S.clock, S.vc_ack = bits(tenth, T.clock) == 1, bits(tenth, T.vc_ack)
      A.request = A.request or S.nack
      if S.control then
        control_set(A, set, S)
        number = S.next
        A.ack, A.probe, A.vc_acks = S.ack_full, A.probe or S.probe, S.vc_acks
        -- All below this number has left already.
        session.high = session.high or S.next
      else
        number = data_set(A, set, S, session, number)
        A.ack = A.ack or S.ack
      end
    end
  end
  A.seq = A.seq or number
end

return { read = set_frame, read_set = read_set }
