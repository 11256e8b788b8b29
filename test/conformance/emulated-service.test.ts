import { afterEach, describe, expect, test } from 'vitest'
import { createReceiver, type MediaEvent, urlToken } from '../../src/index.ts'
import { createClient, registerWebhook } from '../../src/service/client/index.ts'
import { createEmulator } from '../../src/service/emulator/emulator.ts'
import { profiles } from '../../src/service/emulator/sending/profile.ts'
import { type Fault, faults } from '../../src/service/emulator/sending/sending.ts'
import { type AdapterName, mounts } from '../support/mounts.ts'
import { silent } from '../support/silent.ts'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

const token = 'url-token-5c1e'
const media = { title: 'Holiday.mp4', qualities: ['360p', '720p', '1080p'] }
const life = ['file.received', 'encoding.started', ...media.qualities, 'encoding.finished']

/** The fields that distinguish an event from the others of its media item. */
const nameOf = (event: MediaEvent): string => ('quality' in event ? `${event.quality}` : event.type)

/** Losses that no receiver can prevent: the sender never sends the event, or never retries its own broken delivery. */
const isLost = (profile: string, fault?: Fault) =>
  fault === 'drop' || (fault === 'corrupt-body' && profile === 'observed')

describe.each(Object.keys(mounts) as AdapterName[])('through the %s adapter', (adapter) => {
  describe.each(profiles)('a service that sends as %s', (profile) => {
    test.each([undefined, ...faults])('with the fault %s has every event handled exactly once', async (fault) => {
      const handled: string[] = []
      const receiver = createReceiver({ verify: urlToken({ secret: token }), logger: silent })
      receiver.onAny((event) => void handled.push(nameOf(event)))
      const mounted = await mounts[adapter](receiver)
      const emulator = await createEmulator({ profile, timeScale: 0.002 })
      cleanups.push(
        mounted.close,
        () => emulator.close(),
        () => receiver.close(),
      )

      const client = createClient(emulator.credentials, { baseUrl: emulator.url })
      const { data } = await registerWebhook(client, receiver, { url: `${mounted.url}?token=${token}` })
      if (fault !== undefined) emulator.behave(data.webhook.id, { fault })
      emulator.addMedia(media)
      await emulator.settled()
      await receiver.close()

      expect(handled.toSorted()).toEqual(isLost(profile, fault) ? [] : life.toSorted())
    })
  })
})
