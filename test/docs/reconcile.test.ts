import { expect, onTestFinished, test } from 'vitest'
import { nodeHandler } from '../../adapters/node.ts'
import {
  createReceiver,
  type LookedUpEvent,
  lifecycleKey,
  type MediaEvent,
  type Receiver,
  unverified,
} from '../../src/index.ts'
import { createClient, registerWebhook } from '../../src/service/client/index.ts'
import type { Fault } from '../../src/service/emulator/index.ts'
import { emulate } from '../service/emulator/started-emulator.ts'
import { serveWebhook } from '../support/serve.ts'
import { silent } from '../support/silent.ts'
import { exportsOf } from './written-out.ts'

const guide = exportsOf('reconcile', 'look-up', {}) as {
  lookUp: (service: string, since: Date) => AsyncGenerator<LookedUpEvent>
}
const { reconcile } = exportsOf('reconcile', 'reconcile', { './look-up.ts': guide }) as {
  reconcile: (receiver: Receiver, service: string, hours?: number) => Promise<number>
}
const { lookUpOverdue } = exportsOf('reconcile', 'overdue', {}) as {
  lookUpOverdue: (
    receiver: Receiver,
    lookUpOne: (mediaId: string) => Promise<LookedUpEvent | undefined>,
    within?: number,
  ) => Receiver
}

/** A receiver as the guide makes it, and a service that sends to it. */
async function start(fault?: Fault) {
  const events: MediaEvent[] = []
  const receiver = createReceiver({
    verify: unverified(),
    eventKey: lifecycleKey,
    logger: silent,
    retry: { baseMs: 50, maxMs: 50, attempts: 100 },
  })
  receiver.on(['encoding.finished', 'encoding.failed'], (event) => void events.push(event))
  onTestFinished(async () => void (await receiver.close()))
  const emulator = await emulate()
  const client = createClient(emulator.credentials, { baseUrl: emulator.url })
  const { data } = await registerWebhook(client, receiver, { url: await serveWebhook(nodeHandler(receiver)) })
  if (fault !== undefined) emulator.behave(data.webhook.id, { fault })
  return { receiver, emulator, events }
}

test('the schedule of the guide finds what was never sent, once, also when it is delivered late', async () => {
  const { receiver, emulator, events } = await start('drop')
  const media = [emulator.addMedia({ title: 'Holiday.mp4' }), emulator.addMedia({ fails: true })]
  await emulator.settled()
  expect(events).toEqual([])
  expect(await reconcile(receiver, emulator.url)).toBe(2)
  await expect.poll(() => events).toHaveLength(2)
  expect(await reconcile(receiver, emulator.url)).toBe(0)

  for (const { id } of emulator.sendings()) emulator.repeat(id, {})
  await emulator.settled()
  const late = emulator.sendings().filter(({ deliveries }) => deliveries.length > 0)
  expect(late.map(({ deliveries }) => deliveries[0]?.answer?.body)).toEqual(
    late.map(() => expect.stringContaining('"duplicate"')),
  )
  expect(late).toHaveLength(2)
  expect(events.map(({ type, mediaId, source }) => [type, mediaId, source]).toSorted()).toEqual(
    [
      ['encoding.finished', media[0]?.id, 'lookup'],
      ['encoding.failed', media[1]?.id, 'lookup'],
    ].toSorted(),
  )
})

test('the schedule of the guide finds nothing that was delivered, and nothing before its time', async () => {
  const { receiver, emulator, events } = await start()
  emulator.addMedia()
  await emulator.settled()
  expect(await reconcile(receiver, emulator.url)).toBe(0)
  expect(await reconcile(receiver, emulator.url, -1)).toBe(0)
  expect(events.map(({ source }) => source)).toEqual(['delivery'])
})

test('the look-up of the guide reads every page', async () => {
  const emulator = await emulate()
  for (let count = 0; count < 101; count++) emulator.addMedia({ qualities: ['360p'] })
  await emulator.settled()
  const found: string[] = []
  for await (const { mediaId } of guide.lookUp(emulator.url, new Date(0))) found.push(mediaId)
  expect(new Set(found).size).toBe(101)
})

test('the handler of the guide makes what it looks up the overdue event', async () => {
  const { receiver, emulator, events } = await start('drop')
  const lookUpOne = async (mediaId: string) => {
    for await (const found of guide.lookUp(emulator.url, new Date(0))) if (found.mediaId === mediaId) return found
    return undefined
  }
  lookUpOverdue(receiver, lookUpOne, 1)
  // Its webhook is not subscribed to file.received, so that this event comes from a look-up as well.
  const { id: mediaId } = emulator.addMedia()
  expect(await receiver.accept({ type: 'file.received', mediaId })).toBe('accepted')
  await emulator.settled()
  await expect.poll(() => events).toHaveLength(1)
  await expect.poll(() => receiver.inbox.stats()).toMatchObject({ waiting: 0, running: 0, retrying: 0 })
  expect(events).toMatchObject([{ mediaId, type: 'encoding.finished', source: 'lookup' }])
})
