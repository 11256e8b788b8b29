import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { bundled, Forked } from './forked.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('postgresInbox', () => {
  const postgres = postgresTests()

  const harmless = Array.from({ length: 60 }, (_, index) => `harmless ${index}`)
  const hot = Array.from({ length: 40 }, (_, index) => `hot ${index % 2}`)

  test.each([
    ['', [...harmless.slice(0, 20), 'culprit', ...harmless.slice(20)]],
    [' behind two hot media items', [...hot, 'culprit', ...harmless]],
  ])('makes a dead letter of the event that crashes its process%s, and of none that runs beside it', async (_, all) => {
    const folder = await temporaryFolder()
    const program = await bundled(new URL('processes/crashing.ts', import.meta.url), folder)
    await postgres.query('DROP TABLE IF EXISTS effect')
    await postgres.query('CREATE TABLE effect (media text)')
    const receiver = postgres.receiver({ handles: false }).onAny(() => {})
    await receiver.ready()
    for (const [index, mediaId] of all.entries()) await accept(receiver, mediaId, `${index}`)

    const isOver = async () => {
      const { waiting, running, retrying } = await receiver.inbox.stats()
      return waiting + running + retrying === 0
    }
    let crashes = 0
    while (!(await isOver())) {
      const child = new Forked(program, { url: postgres.server.url, schema: postgres.schema }, () => {})
      while (!child.hasEnded && !(await isOver())) await sleep(20)
      if (child.hasEnded) crashes++
      child.kill()
      await child.ended
    }

    const deadLetters = await receiver.inbox.deadLetters.list()
    expect(deadLetters.map(({ event }) => event?.mediaId)).toEqual(['culprit'])
    expect(deadLetters[0]?.failures).toEqual([
      { handler: 'none', message: 'the process crashed 10 times while handling it' },
    ])
    expect(crashes).toBe(10)
    const written = await postgres.query<{ media: string }>('SELECT media FROM effect')
    expect(new Set(written.map(({ media }) => media))).toEqual(new Set(all.filter((media) => media !== 'culprit')))
  })
})
