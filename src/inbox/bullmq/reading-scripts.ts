// Steps that only read. BullMQ's own keys begin with the queue's prefix, ARGV[1].

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
 * Reads jobs and their states in one step. Returns the state, the score among the delayed ones and the fields of each
 * existing job. ARGV: prefix, job ids.
 */
export const readScript = `
local prefix, running, found = ARGV[1], {}, {}
for _, id in ipairs(redis.call('LRANGE', prefix .. 'active', 0, -1)) do running[id] = true end
for i = 2, #ARGV do
  local id = ARGV[i]
  local job = redis.call('HMGET', prefix .. id, 'data', 'progress', 'atm', 'finishedOn', 'failedReason')
  if job[1] then
    local due = redis.call('ZSCORE', prefix .. 'delayed', id)
    local isDead = redis.call('ZSCORE', prefix .. 'failed', id)
    local state = due and 'retrying' or isDead and 'dead' or running[id] and 'running' or 'waiting'
    found[#found + 1] = {state, due, unpack(job)}
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

/** Returns the numbers of each process in each minute. ARGV: prefix, first minute, last minute. */
export const readActivityScript = `
local found = {}
for minute = tonumber(ARGV[2]), tonumber(ARGV[3]) do
  for _, numbers in ipairs(redis.call('HVALS', ARGV[1] .. 'activity:' .. string.format('%d', minute))) do
    found[#found + 1] = minute
    found[#found + 1] = numbers
  end
end
return found`
