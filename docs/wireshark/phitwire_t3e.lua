-- T3E for the dissector of phitwire's link frames: packets of flits in bursts. docs/guide/src/wire-format.md, sections 18 to 24.

local K = ...
-- Wireshark runs every file of a plug-in folder; this one is run by phitwire.lua, which hands over what it needs.
if type(K) ~= "table" then return end
local F, be, bits, int = K.F, K.be, K.bits, K.int
local problem, leaves = K.problem, K.leaves
local floor, format, byte = math.floor, string.format, string.byte
local xor, crc32c, FLITS, REMEMBERED = K.xor, K.crc32c, K.FLITS, K.REMEMBERED

-- Words of 64 bits are two halves, for numbers are exact only up to 2^53.
local function bits64(hi, lo, at)
  local lowest, count = at[1], at[2]
  if lowest >= 32 then return floor(hi / 2 ^ (lowest - 32)) % 2 ^ count end
  if lowest + count <= 32 then return floor(lo / 2 ^ lowest) % 2 ^ count end
  return floor(lo / 2 ^ lowest) + hi % 2 ^ (lowest + count - 32) * 2 ^ (32 - lowest)
end

local function bit64(hi, lo, n)
  if n >= 32 then return floor(hi / 2 ^ (n - 32)) % 2 end
  return floor(lo / 2 ^ n) % 2
end

local function read_flit(s, at, index)
  local from = F.t3e.flit_bits * index
  local first, shift = at + floor(from / 8), from % 8
  local function little(offset, count)
    local value = 0
    for i = offset + count - 1, offset, -1 do value = value * 256 + (byte(s, first + i + 1) or 0) end
    return value
  end
  local lo = floor(little(0, 5) / 2 ^ shift) % 2 ^ 32
  local hi = floor(little(4, 5) / 2 ^ shift) % 2 ^ 32
  local control = floor(little(8, 2) / 2 ^ shift) % 64
  return { hi = hi, lo = lo, kind = control % 8, credit = floor(control / 8) }
end

-- 1 right, 0 wrong, and whether one bit is wrong, which the destination corrects.
local function header_verdict(flit)
  local syndrome, parity, place = 0, 0, 3
  for n = 0, 63 do
    local set = bit64(flit.hi, flit.lo, n) == 1
    if set then parity = 1 - parity end
    if n < 57 then
      -- Powers of two are no places of information.
      while place == 4 or place == 8 or place == 16 or place == 32 do place = place + 1 end
      if set then syndrome = xor(syndrome, place) end
      place = place + 1
    elseif n < 63 and set then
      syndrome = xor(syndrome, 2 ^ (n - 57))
    end
  end
  return (syndrome == 0 and parity == 0) and 1 or 0, parity == 1
end

local function data_check(words)
  local places, parity = 0, 0
  for index, word in ipairs(words) do
    for n = 0, 63 do
      if bit64(word.hi, word.lo, n) == 1 then
        places, parity = xor(places, 64 * index + n), 1 - parity
      end
    end
  end
  return places % 1024 + 1024 * parity
end

local BARRIERS = { [0] = "arrive", "eureka", "barrier done", "eureka done" }
local MAINTENANCE = { [0] = "register read", "register write", [4] = "register done", [5] = "unknown register", [6] = "read-only register", [7] = "value not taken" }

local function t3e_packet(A, open)
  local flits, first = open.flits, open.flits[1]
  local P = { length = #flits, begins_in = open.frame, retry = open.retry, vc = open.kind - 1, number = open.number }
  A.packets[#A.packets + 1] = P
  if open.kind == 6 then
    P.command, P.opcode = BARRIERS[first.lo % 4], first.lo % 4
    P.summary = format("barrier unit %d", floor(first.lo / 4) % 32)
    return
  elseif open.kind == 7 then
    P.opcode = bits64(first.hi, first.lo, { 36, 3 })
    P.command = MAINTENANCE[P.opcode] or "register, reserved"
    P.register = bits64(flits[2].hi, flits[2].lo, { 36, 16 })
    P.id = bits64(first.hi, first.lo, { 50, 7 })
    return
  end
  local H = F.t3e.header
  local function part(at) return bits64(first.hi, first.lo, at) end
  local command = open.command
  P.opcode, P.command = part(H.command), command.name
  P.response = P.opcode >= 32
  P.dest = part(H.tag) % 2 ^ 13
  P.dest_name = format("(%d,%d,%d)", part(H.x), part(H.y), part(H.z))
  P.adaptive = part(H.adaptive) == 1
  if P.response then
    P.id = part(H.id) + 1024 * part(H.origin) % 2 ^ 20
  else
    P.source, P.id = part(H.origin), part(H.id)
    local second = flits[2]
    if second then
      P.id = P.id + 1024 * bits64(second.hi, second.lo, { 54, 10 })
      P.address = bits64(second.hi, second.lo, { 0, 32 }) + bits64(second.hi, second.lo, { 32, 16 }) * 2 ^ 32
      P.size = bits64(second.hi, second.lo, { 48, 6 }) + 1
    end
  end
  local words, rest = {}, {}
  for i = 2, #flits do words[i - 1] = flits[i] end
  for i = command.header + 1, #flits do
    for n = 0, 7 do rest[#rest + 1] = string.char(bits64(flits[i].hi, flits[i].lo, { 8 * n, 8 })) end
  end
  P.data = #rest > 0 and table.concat(rest) or nil
  P.size = P.size or #rest
  P.crc = part(H.data_check)
  local right, one_bit = header_verdict(first)
  P.crc_status = (right == 1 and data_check(words) == P.crc) and 1 or 0
  if right == 0 then
    problem(A, "bad_check", one_bit and "a header flit has a wrong bit" or "a header flit cannot be read")
  elseif P.crc_status == 0 then
    problem(A, "bad_check", format("packet: data check %03x, should be %03x", P.crc, data_check(words)))
  end
end

local function take_t3e_flit(A, flit, head, opens, number, again)
  local kind = flit.kind
  if kind == 0 then return end
  local open = opens[kind]
  if head then
    if open then problem(A, "malformed", format("a packet begins inside another of %s", FLITS[kind])) end
    local length, command = 1, nil
    if kind == 7 then length = 3 end
    if kind < 6 then
      command = F.t3e.commands[bits64(flit.hi, flit.lo, F.t3e.header.command)]
      if not command then
        problem(A, "malformed", "no packet has such a command")
        opens[kind] = nil
        return
      end
      length = command.flits
    end
    open = { flits = {}, length = length, command = command, kind = kind, frame = A.frame, number = number }
  elseif not open then
    return
  else
    -- A copy: the same burst may leave again.
    local copy = {}
    for name, value in pairs(open) do copy[name] = value end
    copy.flits = { table.unpack(open.flits) }
    open = copy
  end
  open.flits[#open.flits + 1] = flit
  if #open.flits >= open.length then
    open.retry = again
    t3e_packet(A, open)
    open = nil
  end
  opens[kind] = open
end

local function read_burst(s, A, B, session)
  local T, opens = F.t3e, {}
  for kind, open in pairs(session.before[B.number] or {}) do opens[kind] = open end
  local marks = be(s, B.at + T.burst_bytes - 1, 1)
  B.busy = 0
  for index = 0, T.burst_flits - 1 do
    local flit, head = read_flit(s, B.at, index), floor(marks / 2 ^ index) % 2 == 1
    if flit.credit > T.vcs or (head and flit.kind == 0) then
      problem(A, "malformed", format("burst %s, flit %d: control bits that mean nothing", int(B.number), index))
    else
      if flit.kind ~= 0 then B.busy = B.busy + 1 end
      take_t3e_flit(A, flit, head, opens, B.number, B.retry)
    end
  end
  session.before[B.number + 1] = opens
  session.before[B.number - 2 * REMEMBERED] = nil
end

local function burst_frame(s, A, h, key)
  local T, n = F.t3e, h.units
  local words = 8 * (3 + T.burst_vcs)
  local control = words + (F.word_bytes - words % F.word_bytes) % F.word_bytes
  local each = T.burst_bytes + F.check_bytes
  each = each + (F.word_bytes - each % F.word_bytes) % F.word_bytes
  A.checked, A.area = F.header_bytes, F.plain_at
  if #s < F.plain_at + control + each * n then
    return problem(A, "malformed", format("a frame of %d bursts has %d bytes, here are %d", n, F.plain_at + control + each * n, #s))
  end
  A.length = F.plain_at + control + each * n
  if not A:check_header(s, s:sub(1, F.header_bytes) .. s:sub(F.plain_at + 1, F.plain_at + control)) then return end
  local function word(index) return be(s, F.plain_at + 8 * index, 8) end
  local flags = word(2)
  A.seq, A.ack, A.request, A.probe = word(0), word(1), flags % 2 == 1, floor(flags / 2) % 2 == 1
  A.vc_acks = { word(3) % 2 ^ 32 }
  if flags > 3 then problem(A, "malformed", "flags that mean nothing", F.plain_at + 16, 8) end
  if A.seq >= 2 ^ 52 or A.ack >= 2 ^ 52 then return problem(A, "malformed", "numbers that no session reaches", F.plain_at, 16) end
  local session = A:session(key, h)
  session.before = session.before or {}
  A.bursts, A.has_units = {}, n > 0
  local high = session.high
  if n > 0 and high and A.seq > high then
    A.missing_before = A.seq - high
    problem(A, "out_of_order", format("%s bursts before this frame were not seen", int(A.missing_before)))
  end
  for i = 0, n - 1 do
    local number = A.seq + i
    local B = { at = F.plain_at + control + each * i, number = number, retry = high ~= nil and number < high }
    A.bursts[i + 1] = B
    B.check = be(s, B.at + T.burst_bytes, 4)
    leaves(session, number, A, B.retry)
    local right = crc32c(s, B.at, B.at + T.burst_bytes)
    B.status = right == B.check and 1 or 0
    if B.status == 1 then
      read_burst(s, A, B, session)
    else
      problem(A, "bad_check", format("burst %s: CRC-32C %08x, should be %08x", int(number), B.check, right), B.at, each)
    end
  end
  -- A frame without bursts says what has left already.
  session.high = math.max(high or 0, A.seq + n)
end

return { read = burst_frame, read_flit = read_flit }
