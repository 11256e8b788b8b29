/** The value of a handled or discarded event's key. */
export const handledMark = 'handled'

/** An open expectation's id starts with its place. */
const removeExpectation = `
local function placeOf(id) return string.match(id, '^[^:]+') end
local function removeExpectation(prefix, id)
  redis.call('ZREM', prefix .. 'expected-of:' .. placeOf(id), id)
  redis.call('ZREM', prefix .. 'expected', id)
  redis.call('HDEL', prefix .. 'expected-data', id)
end`

/** Atomic steps, on the inbox's own keys only: all start with the prefix of `OwnKeys`. Times and TTLs in ms. */
export const scripts = {
  /** Remembers an event and its place in acceptance order. Returns the first caller's token, or `handledMark`. */
  remember: `
local prefix, id, token, ttl, member = unpack(ARGV)
local key, events = prefix .. 'key:' .. id, prefix .. 'events'
local known = redis.call('GET', key)
if known then return known end
redis.call('SET', key, token, 'PX', ttl)
redis.call('ZADD', events, 'NX', redis.call('INCR', prefix .. 'sequence'), member)
return token`,

  end: `
local prefix, id, ttl, member = unpack(ARGV)
redis.call('SET', prefix .. 'key:' .. id, '${handledMark}', 'PX', ttl)
return redis.call('ZREM', prefix .. 'events', member)`,

  /** Keeps an unreadable delivery and drops the oldest beyond a limit. Replaces a kept one only if `replaces`. */
  keepUnreadable: `
local prefix, key, data, now, max, replaces = unpack(ARGV)
local order, kept = prefix .. 'unreadable', prefix .. 'unreadable-data'
if replaces == '0' and redis.call('HEXISTS', kept, key) == 1 then return 0 end
redis.call('HSET', kept, key, data)
redis.call('ZADD', order, now, key)
for _, old in ipairs(redis.call('ZRANGE', order, 0, -max - 1)) do
  redis.call('ZREM', order, old)
  redis.call('HDEL', kept, old)
end
return 1`,

  /** Removes an unreadable delivery, or only this data. Returns 0 if another caller was first, or kept it again. */
  removeUnreadable: `
local prefix, key, expected = unpack(ARGV)
local data = redis.call('HGET', prefix .. 'unreadable-data', key)
if not data or expected and data ~= expected then return 0 end
redis.call('ZREM', prefix .. 'unreadable', key)
return redis.call('HDEL', prefix .. 'unreadable-data', key)`,

  /**
   * Applies an event's expectation changes, once: its key is marked. ARGV continues with the places it ends, then the
   * id, deadline and data of each expectation it begins.
   */
  applyChanges: `${removeExpectation}
local prefix, id, keyTtl, endTtl, at, ends = unpack(ARGV, 1, 6)
local key = prefix .. 'key:' .. id
local known = redis.call('GET', key) or ''
if known == '${handledMark}' or string.sub(known, 1, 1) == '+' then return 0 end
redis.call('SET', key, '+' .. known, 'PX', keyTtl)
for i = 7, 6 + ends do
  local ended = prefix .. 'ended:' .. ARGV[i]
  local last = redis.call('GET', ended)
  redis.call('SET', ended, last and tonumber(last) > tonumber(at) and last or at, 'PX', endTtl)
  for _, open in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'expected-of:' .. ARGV[i], '-inf', at)) do
    removeExpectation(prefix, open)
  end
end
for i = 7 + ends, #ARGV, 3 do
  local open, dueAt, data = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local ended = redis.call('GET', prefix .. 'ended:' .. placeOf(open))
  local isOpen = not ended or tonumber(ended) < tonumber(at)
  if isOpen and redis.call('HSETNX', prefix .. 'expected-data', open, data) == 1 then
    redis.call('ZADD', prefix .. 'expected-of:' .. placeOf(open), at, open)
    redis.call('ZADD', prefix .. 'expected', dueAt, open)
  end
end
return 1`,

  /**
   * Takes overdue expectations: no event can end them any more. If the caller crashes before it removes them, the next
   * one takes them again. Returns the time until the next deadline, and the id and data of each.
   */
  takeOverdue: `${removeExpectation}
local prefix, limit, leaseMs = unpack(ARGV)
local deadlines, time, found = prefix .. 'expected', redis.call('TIME'), {}
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, id in ipairs(redis.call('ZRANGEBYSCORE', deadlines, '-inf', now, 'LIMIT', 0, limit)) do
  local data = redis.call('HGET', prefix .. 'expected-data', id)
  if data then
    redis.call('ZREM', prefix .. 'expected-of:' .. placeOf(id), id)
    redis.call('ZADD', deadlines, now + leaseMs, id)
    found[#found + 1] = {id, data}
  else
    -- Its data may have been evicted or deleted. That must not keep the others from being handed over.
    removeExpectation(prefix, id)
  end
end
local next = redis.call('ZRANGE', deadlines, 0, 0, 'WITHSCORES')[2]
return {next and tostring(next - now) or false, found}`,

  removeExpected: `${removeExpectation}
local prefix, id = unpack(ARGV)
removeExpectation(prefix, id)
return 1`,

  writeActivity: `
local prefix, process, ttl = unpack(ARGV, 1, 3)
for i = 4, #ARGV, 2 do
  local key = prefix .. 'activity:' .. ARGV[i]
  redis.call('HSET', key, process, ARGV[i + 1])
  redis.call('PEXPIRE', key, ttl)
end
return 1`,

  readActivity: `
local prefix, first, last = unpack(ARGV)
local found = {}
for minute = tonumber(first), tonumber(last) do
  for _, numbers in ipairs(redis.call('HVALS', prefix .. 'activity:' .. string.format('%d', minute))) do
    found[#found + 1] = {minute, numbers}
  end
end
return found`,

  /**
   * Publishes a process's handlers for a lease. Returns those of all processes, and the names of removed handlers,
   * which no process has. ARGV continues with the names this process has or no longer has, as JSON.
   */
  publishHandlers: `
local prefix, process, leaseMs, removedTtl, own = unpack(ARGV, 1, 5)
local processes, removed, live = prefix .. 'processes', prefix .. 'removed-handlers', {}
redis.call('SADD', processes, process)
redis.call('SET', prefix .. 'handlers:' .. process, own, 'PX', leaseMs)
for _, id in ipairs(redis.call('SMEMBERS', processes)) do
  local handlers = redis.call('GET', prefix .. 'handlers:' .. id)
  if handlers then live[#live + 1] = handlers else redis.call('SREM', processes, id) end
end
for i = 6, #ARGV do
  if string.find(table.concat(live), '{"name":' .. ARGV[i], 1, true) then
    redis.call('SREM', removed, ARGV[i])
  else
    redis.call('SADD', removed, ARGV[i])
    redis.call('PEXPIRE', removed, removedTtl)
  end
end
return {live, redis.call('SMEMBERS', removed)}`,

  /**
   * Returns the commands the ACL forbids, as rights to add. Checks all that the docs ask for: the next BullMQ may use
   * others. Redis 6 can't tell.
   */
  missingRights: `
if not redis.acl_check_cmd then return {} end
local function listed(category)
  return redis.call('COMMAND', 'LIST', 'FILTERBY', 'ACLCAT', category)
end
local dangerous, key, missing = {}, KEYS[1] .. 'x', {}
for _, command in ipairs(listed('dangerous')) do dangerous[command] = true end
for _, category in ipairs({'read', 'write'}) do
  for _, command in ipairs(listed(category)) do
    -- Redis answers for no subcommand.
    local isKnown, isAllowed = pcall(redis.acl_check_cmd, command, key, key, key, key)
    if isKnown and not isAllowed and not dangerous[command] then missing[#missing + 1] = '+' .. command end
  end
end
return missing`,
} as const
