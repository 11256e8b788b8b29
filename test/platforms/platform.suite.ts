import { expect, onTestFinished, test } from 'vitest'
import { createClient } from '../../src/service/client/index.ts'
import { createEmulator, type Emulator, type Fault, type Sending } from '../../src/service/emulator/index.ts'
import { type SetupName, setups } from './setups.ts'

/** A receiver that runs on a platform. */
export interface Deployment {
  /** The URL of its webhook. It stays the same when the deployment is restarted. */
  readonly url: string
  /** Returns `<type> <media id> <qualities>` for each run of a handler that succeeded, the qualities joined by commas. */
  handled(): Promise<readonly string[]>
  /** Stops it in an orderly way, as the platform does for a new version, and starts it on the same storage. */
  restart(): Promise<void>
  /** Ends it and removes what it has stored. */
  stop(): Promise<void>
}

/** The title of a media item at whose events the handler of a deployment throws in its first attempt. */
const failsOnce = 'fails once'

/**
 * Proves a setup against the emulator, for both profiles of the sender: three media items with a fault each, a handler
 * that fails once, and an orderly stop in between. Every acknowledged event has to be handled, and none twice. The
 * observed sender has to have every event acknowledged, unless the acknowledgement waits for handlers: it does not repeat
 * what failed.
 * @param start starts the deployment, whose handlers run for every type of event
 */
export function provePlatform(name: SetupName, start: () => Promise<Deployment>): void {
  const { platform, inbox, ack } = setups[name]

  test.each(['documented', 'observed'] as const)(
    `${platform}, ${inbox}, ack '${ack}': each event of the %s sender is handled once, over faults and an orderly stop`,
    async (profile) => {
      const deployment = await start()
      onTestFinished(() => deployment.stop())
      await using emulator = await createEmulator({ profile, timeScale: 0.02 })
      const webhookId = await register(emulator, deployment.url)
      const upload = (fault: Fault, title?: string) => {
        emulator.behave(webhookId, { fault })
        emulator.addMedia({ ...(title && { title }) })
        return emulator.settled({ timeoutMs: 60_000 })
      }
      await upload('lost-answer', failsOnce)
      const sentMeanwhile = upload('concurrent-duplicate')
      await expect.poll(() => emulator.sendings().length, { interval: 2 }).toBeGreaterThan(eventsOfMedia)
      await deployment.restart()
      await sentMeanwhile
      await upload('cut-connection')
      if (profile === 'observed' && ack === 'accepted')
        expect(emulator.sendings().map(({ state }) => state)).toEqual(all('acknowledged'))

      const sendings = emulator.sendings().map((sending) => ({ ...sending, event: eventOf(sending) }))
      const acknowledged = sendings.filter(({ state }) => state === 'acknowledged').map(({ event }) => event)
      await expect.poll(() => deployment.handled()).toEqual(expect.arrayContaining(acknowledged))
      const handled = (await deployment.handled()).toSorted()
      expect(handled).toEqual([...new Set(handled)])
      expect(sendings.map(({ event }) => event)).toEqual(expect.arrayContaining(handled))
    },
  )
}

/** The events of a media item with two qualities. */
const eventsOfMedia = 5

const all = (state: string): string[] => new Array(3 * eventsOfMedia).fill(state)

/** The event of a sending, in the form of {@link Deployment.handled}. */
const eventOf = ({ payload: { type, media_id, qualities } }: Sending): string => `${type} ${media_id} ${qualities}`

async function register({ url, credentials }: Emulator, receiver: string): Promise<string> {
  const types = { fileReceived: true, encodingStarted: true, partialFinished: true, encodingFinished: true }
  const { data } = await createClient(credentials, { baseUrl: url }).webhook.create({ url: receiver, ...types })
  return data.webhook.id
}
