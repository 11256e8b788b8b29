// BullMQ has no single command for these steps: the first ones write, and the others, from `selectScript` on, only read.
// They use BullMQ's own keys, and those begin with the queue's prefix, ARGV[1].

/** The value of an event's deduplication key, in place of its job's id, once the event was handled or discarded. */
export const handledMark = 'handled'

const removeJob = `local function removeJob(id)
  redis.call('DEL', ARGV[1] .. id, ARGV[1] .. id .. ':logs')
end
`

/**
 * Keeps an unreadable delivery. ARGV: prefix, job id, deduplication id, its TTL in ms, data, options, reason, time in
 * ms, maximum number kept.
 */
export const keepUnreadableScript = `${removeJob}
local prefix, id, failed, unreadable = ARGV[1], ARGV[2], ARGV[1] .. 'failed', ARGV[1] .. 'unreadable'
local known = redis.call('GET', prefix .. 'de:' .. ARGV[3])
if known and redis.call('EXISTS', prefix .. known) == 1 then return 0 end
redis.call('SET', prefix .. 'de:' .. ARGV[3], id, 'PX', ARGV[4])
redis.call('HSET', prefix .. id, 'name', 'unreadable', 'data', ARGV[5], 'opts', ARGV[6], 'deid', ARGV[3],
  'failedReason', ARGV[7], 'timestamp', ARGV[8], 'finishedOn', ARGV[8], 'delay', 0, 'priority', 0)
redis.call('ZADD', failed, ARGV[8], id)
redis.call('ZADD', unreadable, ARGV[8], id)
for _, old in ipairs(redis.call('ZRANGE', unreadable, 0, -ARGV[9] - 1)) do
  redis.call('ZREM', unreadable, old)
  if redis.call('ZREM', failed, old) == 1 then
    redis.call('DEL', prefix .. 'de:' .. redis.call('HGET', prefix .. old, 'deid'))
    removeJob(old)
  end
end
return 1`

/**
 * Converts the job of an unreadable delivery into the job of its event. Returns a `Conversion`. ARGV: prefix, job id, name,
 * data, deduplication id.
 */
export const convertScript = `
local prefix, id = ARGV[1], ARGV[2]
local before = redis.call('HGET', prefix .. id, 'deid')
if not before then return 'gone' end
local holder = redis.call('GET', prefix .. 'de:' .. ARGV[5])
if holder == id then return 'converted' end
if holder and (holder == '${handledMark}' or redis.call('EXISTS', prefix .. holder) == 1) then
  -- BullMQ deletes a key without a TTL with its job.
  redis.call('PERSIST', prefix .. 'de:' .. before)
  return 'known'
end
redis.call('SET', prefix .. 'de:' .. ARGV[5], id)
redis.call('DEL', prefix .. 'de:' .. before)
redis.call('HSET', prefix .. id, 'name', ARGV[3], 'data', ARGV[4], 'deid', ARGV[5])
redis.call('HDEL', prefix .. id, 'progress')
redis.call('ZREM', prefix .. 'unreadable', id)
return 'converted'`

/** Removes a dead letter and remembers its key. ARGV: prefix, job id, deduplication id, TTL in ms or 0. */
export const discardScript = `${removeJob}
local prefix, id, key = ARGV[1], ARGV[2], ARGV[1] .. 'de:' .. ARGV[3]
if redis.call('ZREM', prefix .. 'failed', id) == 0 then return 0 end
redis.call('ZREM', prefix .. 'unreadable', id)
removeJob(id)
if ARGV[4] == '0' then redis.call('DEL', key) else redis.call('SET', key, '${handledMark}', 'PX', ARGV[4]) end
return 1`

/** Adds to the number of processes that an event has ended. Returns the sum. ARGV: prefix, job id, number to add. */
export const countCrashScript = `
local key = ARGV[1] .. ARGV[2]
-- Another process may have removed the job.
if redis.call('EXISTS', key) == 0 then return 0 end
return redis.call('HINCRBY', key, 'cutOffs', ARGV[3])`

/**
 * Records the progress of a job, and deletes other fields. BullMQ's own command would also keep the progress, with its
 * errors, in the stream of the queue's events. ARGV: prefix, job id, progress, fields to delete.
 */
export const recordScript = `
local key = ARGV[1] .. ARGV[2]
if redis.call('EXISTS', key) == 0 then return 0 end
redis.call('HSET', key, 'progress', ARGV[3])
if #ARGV > 3 then redis.call('HDEL', key, unpack(ARGV, 4)) end
return 1`

const removeExpectation = `local function removeExpectation(id)
  local key = ARGV[1] .. 'expected:' .. id
  local place = redis.call('HGET', key, 'place')
  if place then redis.call('ZREM', ARGV[1] .. 'expected-of:' .. place, id) end
  redis.call('ZREM', ARGV[1] .. 'expected', id)
  redis.call('DEL', key)
end
`

/**
 * Applies the effects of an event on expectations, once. Without the job, its first attempt has applied them. A place is
 * the hash of a rule and a media item. ARGV: prefix, job id, TTL of an end in ms, time of the event in ms, number of ends,
 * the place of each, and for each expectation that begins its place, id, deadline in ms, name and data of its overdue job,
 * and the expectation for readers.
 */
export const applyEffectsScript = `${removeExpectation}
local prefix, job, at, ends = ARGV[1], ARGV[1] .. ARGV[2], ARGV[4], tonumber(ARGV[5])
if redis.call('EXISTS', job) == 0 or redis.call('HSETNX', job, 'expected', 1) == 0 then return 0 end
for i = 6, 5 + ends do
  local ended = prefix .. 'ended:' .. ARGV[i]
  local last = redis.call('GET', ended)
  local latest = last and tonumber(last) > tonumber(at) and last or at
  redis.call('SET', ended, latest, 'PX', ARGV[3])
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'expected-of:' .. ARGV[i], '-inf', at)) do
    removeExpectation(id)
  end
end
for i = 6 + ends, #ARGV, 6 do
  local place, id = ARGV[i], ARGV[i + 1]
  local ended, key = redis.call('GET', prefix .. 'ended:' .. place), prefix .. 'expected:' .. id
  if (not ended or tonumber(ended) < tonumber(at)) and redis.call('EXISTS', key) == 0 then
    redis.call('HSET', key, 'place', place, 'name', ARGV[i + 3], 'data', ARGV[i + 4], 'open', ARGV[i + 5])
    redis.call('ZADD', prefix .. 'expected-of:' .. place, at, id)
    redis.call('ZADD', prefix .. 'expected', ARGV[i + 2], id)
  end
end
return 1`

/**
 * Turns expectations whose deadline has passed into waiting jobs, as BullMQ adds them. The id of an expectation is the
 * deduplication id of its overdue event. Returns the next deadline in ms. ARGV: prefix, now in ms, maximum number, job
 * options.
 */
export const handOverScript = `${removeExpectation}
local prefix, deadlines = ARGV[1], ARGV[1] .. 'expected'
for _, id in ipairs(redis.call('ZRANGEBYSCORE', deadlines, '-inf', ARGV[2], 'LIMIT', 0, ARGV[3])) do
  local known = redis.call('GET', prefix .. 'de:' .. id)
  local isNew = not known or known ~= '${handledMark}' and redis.call('EXISTS', prefix .. known) == 0
  local jobId, stored = 'overdue-' .. id, redis.call('HMGET', prefix .. 'expected:' .. id, 'name', 'data')
  -- Its data may have been evicted or deleted. That must not keep the others from being handed over.
  if isNew and stored[2] then
    redis.call('SET', prefix .. 'de:' .. id, jobId)
    redis.call('HSET', prefix .. jobId, 'name', stored[1], 'data', stored[2], 'opts', ARGV[4], 'deid', id,
      'timestamp', ARGV[2], 'delay', 0, 'priority', 0)
    redis.call('LPUSH', prefix .. 'wait', jobId)
    -- Wakes a worker that waits for a job.
    redis.call('ZADD', prefix .. 'marker', 0, '0')
  end
  removeExpectation(id)
end
return redis.call('ZRANGE', deadlines, 0, 0, 'WITHSCORES')[2] or false`

/**
 * Replaces the numbers of a process for some minutes. ARGV: prefix, id of the process, TTL in ms, and for each minute
 * its number and its counts.
 */
export const writeActivityScript = `
for i = 4, #ARGV, 2 do
  local key = ARGV[1] .. 'activity:' .. ARGV[i]
  redis.call('HSET', key, ARGV[2], ARGV[i + 1])
  redis.call('PEXPIRE', key, ARGV[3])
end
return 1`

/**
 * Publishes the handlers of a process for the time of its lease, and returns those of all processes. ARGV: prefix, id
 * of the process, TTL in ms, its handlers.
 */
export const publishHandlersScript = `
local processes, ofProcess, live = ARGV[1] .. 'processes', ARGV[1] .. 'handlers:', {}
redis.call('SADD', processes, ARGV[2])
redis.call('SET', ofProcess .. ARGV[2], ARGV[4], 'PX', ARGV[3])
for _, id in ipairs(redis.call('SMEMBERS', processes)) do
  local handlers = redis.call('GET', ofProcess .. id)
  if handlers then table.insert(live, handlers) else redis.call('SREM', processes, id) end
end
return live`

/** Removes the handlers of a process that ends. ARGV: prefix, id of the process. */
export const removeHandlersScript = `
redis.call('SREM', ARGV[1] .. 'processes', ARGV[2])
return redis.call('DEL', ARGV[1] .. 'handlers:' .. ARGV[2])`

/**
 * Finds jobs whose events may have a type and a media item. Returns the id and the time of acceptance, in ms, of each.
 * ARGV: prefix, type or an empty text, a part of the data or an empty text, job ids.
 */
export const selectScript = `
local prefix, type, part, found = ARGV[1], ARGV[2], ARGV[3], {}
local function matches(id, name)
  if name == 'unreadable' and redis.call('ZSCORE', prefix .. 'unreadable', id) then return false end
  if type ~= '' and name ~= type then return false end
  return part == '' or string.find(redis.call('HGET', prefix .. id, 'data') or '', part, 1, true)
end
for i = 4, #ARGV do
  local job = redis.call('HMGET', prefix .. ARGV[i], 'name', 'timestamp')
  if job[2] and matches(ARGV[i], job[1]) then
    found[#found + 1] = ARGV[i]
    found[#found + 1] = job[2]
  end
end
return found`

/**
 * Reads jobs and their states in one step. Returns the state, the time at which it is due and the fields of each existing
 * job. BullMQ keeps that time in the upper bits of a score. ARGV: prefix, job ids.
 */
export const readScript = `
local prefix, running, found = ARGV[1], {}, {}
for _, id in ipairs(redis.call('LRANGE', prefix .. 'active', 0, -1)) do running[id] = true end
for i = 2, #ARGV do
  local id = ARGV[i]
  local job = redis.call('HMGET', prefix .. id, 'data', 'progress', 'atm', 'finishedOn', 'failedReason',
    'processedOn', 'pb')
  if job[1] then
    local score = redis.call('ZSCORE', prefix .. 'delayed', id)
    local isDead = redis.call('ZSCORE', prefix .. 'failed', id)
    local state = score and 'retrying' or isDead and 'dead' or running[id] and 'running' or 'waiting'
    found[#found + 1] = {state, score and math.floor(score / 4096), job[1], job[2] or '0', tonumber(job[3] or 0),
      tonumber(job[4] or 0), job[5] or '', tonumber(job[6] or 0), job[7] or ''}
  end
end
return found`

/**
 * Returns the data of the first job that waits to start, among the next ARGV[2] ones. If a job has started before, it
 * waits for another attempt.
 */
export const oldestWaitingScript = `
local ids = redis.call('LRANGE', ARGV[1] .. 'wait', -ARGV[2], -1)
for i = #ids, 1, -1 do
  local job = redis.call('HMGET', ARGV[1] .. ids[i], 'ats', 'data')
  if job[2] and (not job[1] or job[1] == '0') then return job[2] end
end
return false`

/** Returns each minute with the numbers of each process. ARGV: prefix, first minute, last minute. */
export const readActivityScript = `
local found = {}
for minute = tonumber(ARGV[2]), tonumber(ARGV[3]) do
  for _, numbers in ipairs(redis.call('HVALS', ARGV[1] .. 'activity:' .. string.format('%d', minute))) do
    found[#found + 1] = {minute, numbers}
  end
end
return found`

/** Returns the open expectations with these ids. ARGV: prefix, ids. */
export const readExpectedScript = `
local found = {}
for i = 2, #ARGV do
  found[#found + 1] = redis.call('HGET', ARGV[1] .. 'expected:' .. ARGV[i], 'open') or nil
end
return found`
