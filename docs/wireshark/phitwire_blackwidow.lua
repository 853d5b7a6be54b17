-- BlackWidow for the dissector of phitwire's link frames: packets of phits. docs/guide/src/wire-format.md, sections 1 to 7.

local K = ...
-- Wireshark runs every file of a plug-in folder; this one is run by phitwire.lua, which hands over what it needs.
if type(K) ~= "table" then return end
local F, be, bits, int = K.F, K.be, K.bits, K.int
local problem, leaves = K.problem, K.leaves
local floor, format, byte = math.floor, string.format, string.byte
local stream, hex_of, OK = K.stream, K.hex_of, K.OK
local word_crc = K.crc_of(16, F.yarc.word.polynomial)
local phit_crc = K.crc_of(16, F.yarc.packet.polynomial)

local WRITE_NAMES = { [0] = "write", "read" }
local REPLY_NAMES = { [0] = "write done", "read data", "refused" }
local REPLY_STATUS = { [0] = "done", "address out of range", "operation not supported", "busy" }
local REGISTER_NAMES = { [0] = "register read", "register write", "register read reply", "register write reply" }
local REGISTER_STATUS = { [0] = "done", "no such register", "read-only", "value not allowed" }

local function maintenance_packet(P, phits)
  local second = phits[2]
  local code, hops = floor(second / 2 ^ 19), floor(second / 2 ^ 15) % 16
  P.opcode, P.command = code, REGISTER_NAMES[code] or "register, reserved"
  P.id = floor((phits[5] or 0) / 2 ^ 12) % 256
  local rest = phits[code < 2 and 9 or 6] or 0
  P.register, P.status = rest % 65536, REGISTER_STATUS[floor(rest / 65536) % 16] or "reserved"
  P.summary = format("register %#x, hop %d of %d", P.register, bits(phits[1], F.yarc.packet.head_payload), hops)
end

local function memory_packet(P, phits)
  local Y, M = F.yarc.packet, F.yarc.memory
  local pieces = { { bits(phits[2], Y.second_payload), Y.second_payload[2] } }
  for i = 3, #phits - 1 do pieces[#pieces + 1] = { phits[i], F.yarc.content_bits } end
  local take = stream(pieces)
  local hash, high = bits(phits[2], Y.hash), M.hash_shift + M.hash_bits
  P.opcode = bits(phits[1], Y.head_payload)
  if P.response then
    P.command = REPLY_NAMES[P.opcode] or "reserved"
    P.id = take(M.tid_bits)
    P.size = P.opcode == 1 and take(5) + 1 or take(5) * 0
    P.status = REPLY_STATUS[take(4)] or "reserved"
    if P.opcode == 1 then P.data = hex_of(take, P.size) end
    return
  end
  P.command = WRITE_NAMES[P.opcode] or "reserved"
  P.source, P.id = take(M.source_bits), take(M.tid_bits)
  local address = take(M.address_bits - high) * 2 ^ high + hash * 2 ^ M.hash_shift
  if P.opcode == 0 then
    address = address + take(1) * M.line_bytes
    local first, size = nil, 0
    local mask = take(M.line_bytes)
    for i = 0, M.line_bytes - 1 do
      if floor(mask / 2 ^ i) % 2 == 1 then first, size = first or i, size + 1 end
    end
    P.address, P.size = address + (first or 0), size
    P.data = hex_of(take, size)
  else
    P.address = address + take(6)
    P.size = take(5) + 1
  end
end

local function phit_packet(A, open, number)
  local Y, phits = F.yarc.packet, open.phits
  local P = { number = number, length = #phits, begins_in = open.frame, retry = open.retry }
  A.packets[#A.packets + 1] = P
  if not open.whole then
    P.incomplete, P.length = true, nil
    P.command = "rest of a packet"
    return P
  end
  local head, eop = phits[1], phits[#phits]
  P.dest, P.vc = bits(head, Y.dest), bits(head, Y.v)
  P.response, P.hashed = P.vc == 1, bits(head, Y.h) == 1
  P.adaptive, P.source_routed = bits(head, Y.a) == 1, bits(head, Y.r) == 1
  P.ok, P.crc = bits(eop, Y.ok), bits(eop, Y.crc)
  local crc = Y.initial
  for i = 1, #phits - 1 do
    local content = phits[i]
    crc = phit_crc(phit_crc(phit_crc(crc, floor(content / 65536)), floor(content / 256) % 256), content % 256)
  end
  crc = phit_crc(crc, P.ok)
  P.crc_status = crc == P.crc and 1 or 0
  if P.crc_status == 0 then problem(A, "bad_check", format("packet %s: CRC %04x, should be %04x", int(number), P.crc, crc)) end
  if P.ok ~= 0 then problem(A, "marked", format("packet %s is marked %s", int(number), OK[P.ok])) end
  if #phits < Y.min_phits or #phits > Y.max_phits then
    problem(A, "malformed", format("packet %s has %d phits", int(number), #phits))
    return P
  end
  if P.source_routed then maintenance_packet(P, phits) else memory_packet(P, phits) end
  return P
end

-- The copies of the control word in the sideband: the first that is right, and how many are not.
local function control_word(s, at, phits)
  local W, bad, first = F.yarc.word, 0, nil
  for copy = 0, floor(phits / W.phits) - 1 do
    local word, crc = {}, W.initial
    for i = 0, W.bits / 8 - 1 do
      local value = 0
      for n = 0, 3 do
        local phit = at + 3 * (copy * W.phits + 4 * i + n)
        value = value * 4 + floor((byte(s, phit + 1) or 0) / 64)
      end
      word[i + 1] = value
      if i < W.bits / 8 - 2 then crc = word_crc(crc, value) end
    end
    if word[11] * 256 + word[12] == crc then
      first = first or word
    else
      bad = bad + 1
    end
  end
  return first, bad
end

local function word_field(word, at)
  local pieces = {}
  for i = 1, 12 do pieces[i] = { word[i], 8 } end
  local take = stream(pieces)
  local before = F.yarc.word.bits - at[1] - at[2]
  while before > 0 do
    local some = math.min(before, 32)
    take(some)
    before = before - some
  end
  return take(at[2])
end

local function walk_phits(s, A, h, session)
  local W, number, kinds = A.word, A.seq, A.kinds
  local open = nil
  if W.offset > 0 then
    local before = session.open
    if before and before.number == number and #before.phits == W.offset then
      -- A copy: the same phits may go on in another frame once more.
      open = { number = number, frame = before.frame, whole = before.whole, phits = { table.unpack(before.phits) } }
    else
      open = { number = number, frame = A.frame, whole = false, phits = {} }
    end
  end
  -- What had left before this pass began left again when it leaves now.
  local pass = session.pass
  if pass ~= W.pass then
    local ahead = pass and (W.pass - pass) % 65536 or 1
    if ahead < 32768 then
      session.base = session.high
      session.pass = W.pass
    else
      A.late = true
    end
  end
  local base, high = session.base, session.high or number
  for i = 0, h.units - 1 do
    local kind = kinds[i]
    if kind ~= 0 then
      local content = be(s, A.area + 3 * i, 3) % 2 ^ F.yarc.content_bits
      if kind == 1 then
        if open then problem(A, "malformed", "a head inside a packet") end
        open = { number = number, frame = A.frame, whole = true, phits = {} }
      elseif not open then
        problem(A, "malformed", "a packet without a head")
        open = { number = number, frame = A.frame, whole = false, phits = {} }
      end
      open.phits[#open.phits + 1] = content
      if #open.phits > 64 then
        problem(A, "malformed", "a packet without an end")
        break
      end
      if kind == 3 then
        local again = not A.late and base ~= nil and number < base
        local copy = not again and not A.late and number < high and session.first[number] ~= nil
        if copy then A.duplicate = true end
        open.retry = again
        leaves(session, number, A, again)
        phit_packet(A, open, number)
        open = nil
        number = number + 1
        high = math.max(high, number)
      end
    end
  end
  if A.has_units and not A.late then
    local expected = session.expected
    if expected and session.expected_pass == W.pass and A.seq > expected then
      A.missing_before = A.seq - expected
      problem(A, "out_of_order", format("%s packets before this frame were not seen", int(A.missing_before)))
    end
    session.expected, session.expected_pass = math.max(number, expected or 0), W.pass
    session.open = open
  end
  session.high = high
end

local function data_frame(s, A, h, key)
  local Y, n = F.yarc, h.units
  if n < Y.min_phits or n % Y.group_phits ~= 0 then
    return problem(A, "malformed", format("%d phits: a frame has a multiple of %d, at least %d", n, Y.group_phits, Y.min_phits), 18, 2)
  end
  local map_bytes = n / Y.group_phits
  A.checked = Y.map_at + map_bytes
  A.area = A.checked + F.check_bytes
  if #s < A.area + 3 * n then
    return problem(A, "malformed", format("a frame of %d phits has %d bytes, here are %d", n, A.area + 3 * n, #s))
  end
  A.length = A.area + 3 * n
  local kinds, has_units = {}, false
  for i = 0, n - 1 do
    kinds[i] = floor(byte(s, Y.map_at + floor(i / 4) + 1) / 4 ^ (3 - i % 4)) % 4
    has_units = has_units or kinds[i] ~= 0
  end
  A.kinds, A.has_units = kinds, has_units
  if not A:check_header(s) then return end
  local word, bad = control_word(s, A.area, n)
  A.words_bad = bad
  if not word then
    A.word_status = 0
    return problem(A, "bad_check", "no copy of the control word has a right check", A.area, 3 * n)
  end
  A.word_status = 1
  local W = Y.word
  A.word = {
    offset = word_field(word, W.offset), status = word_field(word, W.status),
    vc_acks = { word_field(word, W.vc_ack0), word_field(word, W.vc_ack1) }, pass = be(s, Y.rest[1] + 8, 2),
  }
  A.seq = be(s, Y.rest[1], 4) * 65536 + word_field(word, W.seq)
  A.ack = be(s, Y.rest[1] + 4, 4) * 65536 + word_field(word, W.ack)
  A.pass, A.offset, A.status, A.vc_acks = A.word.pass, A.word.offset, A.word.status, A.word.vc_acks
  A.request, A.probe = A.status == 1, A.status == 2
  if A.status > 2 then problem(A, "malformed", format("status %d is reserved", A.status)) end
  walk_phits(s, A, h, A:session(key, h))
end

return { read = data_frame }
