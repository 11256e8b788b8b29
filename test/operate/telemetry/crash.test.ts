import { dirname } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { bundled, Forked } from '../../inbox/postgres/forked.ts'
import { freshPath } from '../../inbox/sqlite/sqlite-tests.ts'
import type { AcceptingTask, FromAccepting } from './processes/accepting.ts'
import { startTracing, tracedReceiver } from './tracing.ts'

const { collector, exported } = await startTracing()

test('after a crash, the process that takes over handles the event in the trace of its delivery', async () => {
  const path = await freshPath()
  const program = await bundled(new URL('./processes/accepting.ts', import.meta.url), dirname(path))
  const task: AcceptingTask = { path, collector: collector.url }
  const killed = await new Promise<Forked<FromAccepting>>((resolve) => {
    const process: Forked<FromAccepting> = new Forked(program, task, () => resolve(process))
    onTestFinished(() => process.kill())
  })
  await killed.kill()
  const [server] = await exported('server')
  const [delivery] = await exported('receive')
  // The run that was cut off never ended, so its span was not exported.
  expect(collector.named('process')).toEqual([])

  tracedReceiver({ inbox: sqliteInbox({ path }) }).on('encoding.finished', () => {}, { name: 'publish' })
  const [run] = await exported('process')
  expect(run).toMatchObject({
    traceId: server?.traceId,
    parent: delivery?.spanId,
    links: [delivery?.spanId],
    attributes: {
      'media_webhooks.handler': 'publish',
      'media_webhooks.media_id': 'a-film',
      'media_webhooks.outcome': 'handled',
    },
  })
})
