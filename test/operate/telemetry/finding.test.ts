import { expect, test } from 'vitest'
import { sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { freshPath } from '../../inbox/sqlite/sqlite-tests.ts'
import type { Exported } from './collector.ts'
import { deliverInServer } from './deliver-in-server.ts'
import { startTracing, tracedReceiver } from './tracing.ts'

const { collector, exported } = await startTracing()

// docs/telemetry.md promises these steps, from exported spans alone.

const spansOf = (mediaId: string) =>
  collector.spans.filter(({ attributes }) => attributes['media_webhooks.media_id'] === mediaId)

const failuresAmong = (spans: readonly Exported[]) => spans.filter(({ error }) => error !== undefined)

test('from traces alone, an operator finds why an event of a media item was not handled', async () => {
  const receiver = tracedReceiver({
    inbox: sqliteInbox({ path: await freshPath() }),
    retry: { attempts: 3, baseMs: 1 },
  })
  receiver.on('encoding.finished', () => {}, { name: 'publish' })
  receiver.on(
    'encoding.finished',
    ({ mediaId }, { attempt }) => {
      if (mediaId === 'broken') throw new TypeError(`the mail server said no in attempt ${attempt}`)
    },
    { name: 'notify' },
  )
  for (const mediaId of ['good', 'broken', 'better']) await deliverInServer(receiver, { media_id: mediaId })
  await exported('process', 8)

  expect(failuresAmong(spansOf('good'))).toEqual([])
  const failures = failuresAmong(spansOf('broken'))
  expect(
    failures.map(({ attributes, exceptions, error }) => ({
      handler: attributes['media_webhooks.handler'],
      attempt: attributes['media_webhooks.attempt'],
      outcome: attributes['media_webhooks.outcome'],
      type: exceptions[0]?.['exception.type'],
      error,
    })),
  ).toEqual(
    [1, 2, 3].map((attempt) => ({
      handler: 'notify',
      attempt,
      outcome: attempt < 3 ? 'retried' : 'dead-lettered',
      type: 'TypeError',
      error: `the mail server said no in attempt ${attempt}`,
    })),
  )
  // The whole story has one trace: the request, the delivery, and all runs for the event.
  const story = collector.spans.filter(({ traceId }) => traceId === failures[0]?.traceId)
  expect(story.map(({ name }) => name).toSorted()).toEqual([
    ...Array(4).fill('process encoding.finished'),
    'receive encoding.finished',
    'server',
  ])
})
