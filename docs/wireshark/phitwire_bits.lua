-- Bits and checks for the dissector of phitwire's link frames. Run by phitwire.lua.

local floor, byte = math.floor, string.byte
-- Lua 5.2 has a library for it, Lua 5.4 an operator, which Lua 5.2 could not read.
local xor = (bit32 and bit32.bxor) or (bit and bit.bxor) or load("return function(a, b) return a ~ b end")()

-- Numbers are exact up to 2^53. A number of `n` bytes, the first the highest, from byte `at` of `s` on.
local function be(s, at, n)
  local value = 0
  for i = at + 1, at + n do value = value * 256 + (byte(s, i) or 0) end
  return value
end

local function bits(value, at) return floor(value / 2 ^ at[1]) % 2 ^ at[2] end

local function u64(value) return UInt64.new(value % 2 ^ 32, floor(value / 2 ^ 32) % 2 ^ 32) end

local function int(value) return string.format("%.0f", value) end

local crc32c_table = {}
for i = 0, 255 do
  local crc = i
  for _ = 1, 8 do
    local half = floor(crc / 2)
    crc = crc % 2 == 1 and xor(half, 0x82f63b78) % 2 ^ 32 or half
  end
  crc32c_table[i] = crc
end

local function crc32c(s, from, to)
  local crc = 0xffffffff
  for i = from + 1, to do
    crc = xor(floor(crc / 256), crc32c_table[xor(crc % 256, byte(s, i) or 0) % 256]) % 2 ^ 32
  end
  return 0xffffffff - crc
end

-- A check of `width` bits, the highest bit first, without reflection or inversion: a function from a state and a
-- byte to the next state, and one that takes fewer bits than a byte.
local function crc_of(width, polynomial)
  local top, all = 2 ^ (width - 1), 2 ^ width
  local function step(crc, one)
    local out = crc >= top
    crc = crc * 2 % all
    if out ~= (one == 1) then crc = xor(crc, polynomial) % all end
    return crc
  end
  local steps = {}
  for i = 0, 255 do
    local crc = 0
    for n = 7, 0, -1 do crc = step(crc, floor(i / 2 ^ n) % 2) end
    steps[i] = crc
  end
  local low = 2 ^ (width - 8)
  return function(crc, value)
    return xor(crc % low * 256, steps[xor(floor(crc / low), value) % 256]) % all
  end, step
end

-- Bits of pieces { value, width }, one behind the other, the highest first: a function that takes the next ones.
local function stream(pieces)
  local at, left = 1, pieces[1] and pieces[1][2] or 0
  return function(count)
    local value = 0
    while count > 0 do
      while left == 0 do
        at = at + 1
        if not pieces[at] then return value * 2 ^ count end
        left = pieces[at][2]
      end
      local take = math.min(count, left)
      value = value * 2 ^ take + floor(pieces[at][1] / 2 ^ (left - take)) % 2 ^ take
      left, count = left - take, count - take
    end
    return value
  end
end

local function hex_of(take, count)
  local text = {}
  for i = 1, count do text[i] = string.char(take(8)) end
  return table.concat(text)
end

return { xor = xor, be = be, bits = bits, u64 = u64, int = int, crc32c = crc32c, crc_of = crc_of, stream = stream, hex_of = hex_of }
