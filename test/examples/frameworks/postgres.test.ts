import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postJson } from '../../support/post-json.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { PostgresServer } from '../../support/postgres/postgres-server.ts'
import { type Program, startProgram } from '../../support/program.ts'
import { type InstalledExample, installExample } from './install-example.ts'

const token = 'a-secret-of-the-test'
const orms = ['drizzle', 'knex', 'kysely', 'prisma', 'typeorm']

describe.skipIf(!findPostgres())('the example for postgres', () => {
  let postgres: PostgresServer
  let example: InstalledExample
  const programs: Program[] = []
  beforeAll(async () => {
    // Prisma downloads an engine for its migrations, which the example has none of.
    const env = { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath }
    const installing = installExample('postgres', { env })
    postgres = await PostgresServer.start()
    example = await installing
    await example.script('generate')
    programs.push(await start(), await start())
  })
  afterAll(async () => {
    await Promise.all(programs.map((program) => program.stop()))
    await postgres?.remove()
  })

  const start = () => {
    const env = { PORT: '0', WEBHOOK_TOKEN: token, DATABASE_URL: postgres.url }
    const options = { cwd: example.folder, env }
    return startProgram(process.execPath, ['--import', 'tsx', 'server.ts'], options, /^listening on (\d+)$/)
  }

  const deliver = async (program: Program | undefined, payload: object) => {
    const url = `http://127.0.0.1:${program?.captured}/webhooks/media?token=${token}`
    const response = await postJson(url, { type: 'encoding.finished', ...payload })
    return ((await response.json()) as { status: string }).status
  }
  const written = () => postgres.query('SELECT id, title FROM video ORDER BY id')
  const waiting = () => postgres.query('SELECT id FROM media_webhooks.event WHERE ended_at IS NULL AND died_at IS NULL')

  test('its types are right', () => example.script('types'))

  test('writes nothing with any library if the handler fails afterwards, at each of three attempts', async () => {
    expect(await deliver(programs[0], { media_id: 'untitled' })).toBe('accepted')
    await expect
      .poll(() => postgres.query('SELECT attempts FROM media_webhooks.event WHERE died_at IS NOT NULL'), {
        timeout: 20_000,
      })
      .toEqual([{ attempts: 3 }])
    expect(await written()).toEqual([])
  })

  test('writes one row with each library, for any number of deliveries to any process', async () => {
    const films = Array.from({ length: 20 }, (_, index) => `film ${index + 10}`)
    const deliveries = films.flatMap((film) =>
      programs.flatMap((program) => [program, program].map((each) => [each, film] as const)),
    )
    const answers = await Promise.all(
      deliveries.map(([program, film]) => deliver(program, { media_id: film, title: 'Holiday.mp4' })),
    )
    expect(answers.filter((answer) => answer === 'accepted')).toHaveLength(films.length)
    expect(answers.filter((answer) => answer === 'duplicate')).toHaveLength(3 * films.length)
    await expect.poll(waiting, { timeout: 20_000 }).toEqual([])
    const rows = films.flatMap((film) => orms.map((orm) => ({ id: `${film} by ${orm}`, title: 'Holiday.mp4' })))
    expect(await written()).toEqual(rows)
  })

  test('closes once it is asked to end', async () => {
    for (const program of programs) expect(await program.stop('SIGTERM')).toBe(0)
  })
})
