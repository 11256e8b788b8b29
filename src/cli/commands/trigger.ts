import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { eventTypes } from '../../index.ts'
import { suggestion } from '../../internal/suggestion.ts'
import {
  eventIntervalNs,
  type LifecycleEvent,
  makeLifecycle,
  makePayload,
} from '../../service/emulator/media/lifecycle.ts'
import { Outbox } from '../../service/emulator/sending/outbox.ts'
import { profiles } from '../../service/emulator/sending/profile.ts'
import { faults } from '../../service/emulator/sending/sending.ts'
import { Changes } from '../../service/emulator/shared/changes.ts'
import { systemClock } from '../../service/emulator/shared/clock.ts'
import type { Payload } from '../../testing/payload.ts'
import { bodyFile } from '../shared/body-file.ts'
import { type CommandInput, defineCommand } from '../shared/command.ts'
import { choice, flagName, list, required, text, timeScale, toggle, UsageError } from '../shared/flags.ts'
import { readScheme, schemeChoice, schemeFlags } from '../shared/schemes.ts'
import { receiverUrl, secretUrlHelp } from '../shared/secret-url.ts'
import { countAcknowledged, deliveryPrinter, printSummary } from './trigger/print.ts'

const types = ['lifecycle', ...eventTypes]

const flags = {
  to: required(receiverUrl('the receiver')),
  type: text('<type|lifecycle>', 'what to send; --type can be left out'),
  body: bodyFile('send this JSON object of any service instead, byte for byte'),
  format: choice(['flat', 'envelope'], 'the wire format (default: flat)'),
  fault: choice(faults, 'a fault that happens to each event once'),
  profile: choice(profiles, 'how events are retried (default: documented)'),
  timeScale,
  title: text('<text>', 'the title of the media item (default: Untitled.mp4)'),
  qualities: list('<names>', 'its qualities, in the order of their encoding (default: 360p,720p)'),
  fails: toggle('lifecycle: the encoding fails at the last quality'),
  sign: schemeChoice('sign deliveries for this verifier'),
  ...schemeFlags,
}

/** Flags of media events, useless with a body from a file. */
const mediaFlags = ['type', 'format', 'title', 'qualities', 'fails'] as const

/** More than one command ever sends. */
const outboxLimit = 1_000

const stepMs = Number(eventIntervalNs) / 1e6

export const trigger = defineCommand({
  name: 'trigger',
  summary: "sends a receiver an event, all events of a media item's life, or the body in a file",
  details: `The types are ${eventTypes.join(', ')}.\n${secretUrlHelp}`,
  positionalFlag: 'type',
  flags,
  json: 'print one JSON object per delivery: type, mediaId, attempt, status, answer, failure, retryInMs …',
  exitCodes: { 0: 'every event that was sent was acknowledged', 1: 'at least one event was not acknowledged' },
  examples: [
    'trigger encoding.finished --to http://127.0.0.1:3000/webhooks/media',
    'trigger lifecycle --to http://127.0.0.1:3000/webhooks/media --time-scale 0.1 --fault duplicate',
    'trigger file.received --to http://127.0.0.1:3000/webhooks/media --sign hmac-signature --header x-signature --secret s3cret',
    'trigger --body event.json --to http://127.0.0.1:3000/webhooks/mux --sign timestamped-signature --header mux-signature --secret s3cret',
  ],
  async run(input, screen) {
    const { values } = input
    const { to, format = 'flat', fault, profile = 'documented', timeScale = 1 } = values
    const sign = readScheme('--sign', values.sign, input)
    const events = eventsFrom(input)
    if (fault === 'reorder' && events.length === 1) throw new UsageError('--fault reorder goes with lifecycle')

    const options = { profile, timeScale, maxWaiting: outboxLimit, maxRecords: outboxLimit, clock: systemClock }
    const delivered = deliveryPrinter({ ...values, headers: undefined }, screen)
    const outbox = new Outbox({ ...options, changes: new Changes(), triggered() {}, delivered })
    try {
      const behaviour = { format, ...(sign && { sign }), ...(fault && { fault }) }
      for (const [index, create] of events.entries()) {
        if (index > 0) await pause(stepMs * timeScale, undefined, { signal: screen.signal })
        const [payload, body] = create()
        outbox.send({ id: 'receiver', url: to }, payload, behaviour, body)
      }
      await untilIdle(outbox, screen.signal)
    } catch (error) {
      if (screen.signal.aborted)
        screen.note(`interrupted: ${countAcknowledged(outbox)} of ${events.length} acknowledged so far`)
      throw error
    } finally {
      await outbox.close()
    }
    return printSummary(outbox, values, screen) ? 0 : 1
  },
})

/** Factories: each event is created when it is sent. */
function eventsFrom({
  values,
  given,
}: CommandInput<typeof flags>): readonly (() => readonly [payload: Payload, body?: string])[] {
  const { type, body } = values
  if (body !== undefined) {
    const unused = mediaFlags.find((name) => given.has(name))
    if (unused === undefined) return [() => [body.payload, body.text]]
    const name = unused === 'type' ? flags.type.takes : flagName(unused)
    throw new UsageError(`--body sends the file as it is: leave out ${name}`)
  }
  if (type === undefined) throw new UsageError(`${flags.type.takes} is missing (or --body <file>)`)
  const { title = 'Untitled.mp4', qualities = ['360p', '720p'], fails = type === 'encoding.failed' } = values
  if (type !== 'lifecycle' && given.has('fails')) throw new UsageError('--fails goes with lifecycle')
  const media = { id: randomUUID(), userId: randomUUID(), title, qualities, fails }
  const life = makeLifecycle(media)
  const create = (event: LifecycleEvent) => () => [makePayload(media, event, systemClock())] as const
  if (type === 'lifecycle') return life.map(create)
  const known = eventTypes.find((each) => each === type)
  if (known === undefined) {
    throw new UsageError(`there is no type '${type}': pass one of ${types.join(', ')}${suggestion(type, types)}`)
  }
  return [create(life.find((event) => event.type === known) ?? { type: known })]
}

/** Waits until every event is acknowledged or given up. Aborting closes the outbox. */
async function untilIdle(outbox: Outbox, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  const stop = () => void outbox.close()
  signal.addEventListener('abort', stop)
  await outbox.idle()
  signal.removeEventListener('abort', stop)
  signal.throwIfAborted()
}
