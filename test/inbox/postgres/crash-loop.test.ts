import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { bundled, Forked } from './forked.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('postgresInbox', () => {
  const postgres = postgresTests()

  test('makes a dead letter of the event that crashes its process, and of none that runs beside it', async () => {
    const folder = await temporaryFolder()
    const program = await bundled(new URL('processes/crashing.ts', import.meta.url), folder)
    await postgres.query('CREATE TABLE effect (media text)')
    const receiver = postgres.receiver({ handles: false }).onAny(() => {})
    await receiver.ready()
    const harmless = Array.from({ length: 60 }, (_, index) => `harmless ${index}`)
    for (const mediaId of [...harmless.slice(0, 20), 'culprit', ...harmless.slice(20)]) await accept(receiver, mediaId)

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
    expect(deadLetters[0]?.failures).toEqual([{ handler: 'none', message: 'its handling was cut off 10 times' }])
    expect(crashes).toBe(10)
    const written = await postgres.query<{ media: string }>('SELECT media FROM effect')
    expect(written.map(({ media }) => media).toSorted()).toEqual(harmless.toSorted())
  })
})
