import { createRequire } from 'node:module'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { postJson } from '../support/post-json.ts'
import { findPostgres } from '../support/postgres/find-postgres.ts'
import { PostgresServer } from '../support/postgres/postgres-server.ts'
import { type Program, startProgram } from '../support/program.ts'

const require = createRequire(import.meta.url)
const token = 'a-secret-of-the-test'

describe.skipIf(!findPostgres())('the example for postgres', () => {
  let postgres: PostgresServer
  const programs: Program[] = []
  beforeAll(async () => {
    postgres = await PostgresServer.start()
    programs.push(await start(), await start())
  })
  afterAll(async () => {
    await Promise.all(programs.map((program) => program.stop()))
    await postgres?.remove()
  })

  const start = () => {
    const env = { PORT: '0', WEBHOOK_TOKEN: token, DATABASE_URL: postgres.url }
    const args = ['--import', require.resolve('tsx'), 'server.ts']
    const cwd = join(inject('userFolder'), 'examples', 'postgres')
    return startProgram(process.execPath, args, { cwd, env }, /^listening on (\d+)$/)
  }

  const deliver = async (program: Program | undefined, payload: object) => {
    const response = await postJson(`http://127.0.0.1:${program?.captured}/webhooks/media?token=${token}`, payload)
    return ((await response.json()) as { status: string }).status
  }

  test('writes the fields of an event with Drizzle', async () => {
    const payload = { type: 'encoding.finished', media_id: 'a-film', title: 'Film.mp4', qualities: '360p,720p' }
    expect(await deliver(programs[0], payload)).toBe('accepted')
    await expect
      .poll(() => postgres.query('SELECT * FROM video'))
      .toEqual([{ media_id: 'a-film', title: 'Film.mp4', qualities: ['360p', '720p'], is_published: true }])
  })

  test('writes one row per event with Kysely, for any number of deliveries to any process', async () => {
    const films = Array.from({ length: 20 }, (_, index) => `film ${index}`)
    const deliveries = films.flatMap((film) =>
      programs.flatMap((program) => [program, program].map((each) => [each, film] as const)),
    )
    const answers = await Promise.all(
      deliveries.map(([program, film]) => deliver(program, { type: 'encoding.failed', media_id: film })),
    )
    expect(answers.filter((answer) => answer === 'accepted')).toHaveLength(films.length)
    expect(answers.filter((answer) => answer === 'duplicate')).toHaveLength(3 * films.length)
    const written = async () => (await postgres.query('SELECT media_id FROM failure')).map((row) => row['media_id'])
    await expect.poll(async () => (await written()).sort()).toEqual(films.toSorted())
    await expect.poll(() => postgres.query('SELECT id FROM media_webhooks.event WHERE ended_at IS NULL')).toEqual([])
    expect(await written()).toHaveLength(films.length)
  })

  test('closes once it is asked to end', async () => {
    for (const program of programs) expect(await program.stop('SIGTERM')).toBe(0)
  })
})
