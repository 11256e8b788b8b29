import { createRequire } from 'node:module'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { postJson } from '../support/post-json.ts'
import { type Program, startProgram } from '../support/program.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { RedisServer } from '../support/redis/redis-server.ts'

const require = createRequire(import.meta.url)
const token = 'a-secret-of-the-test'

describe.skipIf(!findRedis())('the example for bullmq', () => {
  let redis: RedisServer
  let program: Program
  beforeAll(async () => {
    redis = await RedisServer.start()
    const env = { PORT: '0', BOARD_PORT: '0', WEBHOOK_TOKEN: token, REDIS_URL: redis.url }
    const args = ['--import', require.resolve('tsx'), 'server.ts']
    const cwd = join(inject('userFolder'), 'examples', 'bullmq')
    program = await startProgram(process.execPath, args, { cwd, env }, /^listening on (\d+)$/)
  })
  afterAll(async () => {
    await program?.stop()
    await redis?.remove()
  })

  const deliver = async () => {
    const payload = { type: 'encoding.finished', media_id: 'a-film', qualities: '360p,720p' }
    const response = await postJson(`http://127.0.0.1:${program.captured}/webhooks/media?token=${token}`, payload)
    return ((await response.json()) as { status: string }).status
  }

  test('accepts a delivery, knows its duplicate and handles the event', async () => {
    expect(await deliver()).toBe('accepted')
    expect(await deliver()).toBe('duplicate')
    await expect.poll(() => program.output()).toContain('publish a-film in 360p, 720p')
  })

  test('shows the inbox on the board', async () => {
    await expect.poll(() => program.output()).toContain('board on')
    const board = `http://127.0.0.1:${/board on (\d+)/.exec(program.output())?.[1]}`
    expect(await (await fetch(board)).text()).toContain('<title>')
    const { queues } = (await (await fetch(`${board}/api/queues`)).json()) as { queues: object[] }
    expect(queues).toMatchObject([{ name: 'media-webhooks', counts: { failed: 0, waiting: 0 } }])
  })

  test('closes once it is asked to end', async () => {
    expect(await program.stop('SIGTERM')).toBe(0)
  })
})
