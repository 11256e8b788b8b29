import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { eventIntervalNs, lifecycleOf, payloadOf } from '../../emulator/media/lifecycle.ts'
import { Outbox } from '../../emulator/sending/outbox.ts'
import { profiles } from '../../emulator/sending/profile.ts'
import { faults } from '../../emulator/sending/sending.ts'
import { Changes } from '../../emulator/shared/changes.ts'
import { systemClock } from '../../emulator/shared/clock.ts'
import { eventTypes } from '../../index.ts'
import { type CommandInput, defineCommand } from '../shared/command.ts'
import { choice, list, required, text, timeScale, toggle, UsageError } from '../shared/flags.ts'
import { readScheme, schemeChoice, schemeFlags } from '../shared/schemes.ts'
import { receiverUrl, secretUrlHelp } from '../shared/secret-url.ts'
import { suggestion } from '../shared/suggestion.ts'
import { countAcknowledged, deliveryPrinter, printSummary } from './trigger/print.ts'

const flags = {
  to: required(receiverUrl('the receiver')),
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

const types = ['lifecycle', ...eventTypes]

/** A limit for the outbox that one command never reaches. */
const outboxLimit = 1_000

const stepMs = Number(eventIntervalNs) / 1e6

export const trigger = defineCommand({
  name: 'trigger',
  summary: 'sends an event, or all events in the life of a media item, to a receiver',
  details: `The types are ${eventTypes.join(', ')}.\n${secretUrlHelp}`,
  positionals: ['<type|lifecycle>'],
  argumentWords: [types],
  flags,
  json: 'print one JSON object per delivery: type, mediaId, attempt, status, answer, failure, retryInMs …',
  exitCodes: { 0: 'every event that was sent was acknowledged', 1: 'at least one event was not acknowledged' },
  examples: [
    'trigger encoding.finished --to http://127.0.0.1:3000/webhooks/media',
    'trigger lifecycle --to http://127.0.0.1:3000/webhooks/media --time-scale 0.1 --fault duplicate',
    'trigger file.received --to http://127.0.0.1:3000/webhooks/media --sign hmac-signature --header x-signature --secret s3cret',
  ],
  async run(input, screen) {
    const { values } = input
    const { to, format = 'flat', fault, profile = 'documented', timeScale = 1 } = values
    const sign = readScheme('--sign', values.sign, input)
    const { media, events } = eventsFrom(input)
    if (fault === 'reorder' && events.length === 1) throw new UsageError('--fault reorder goes with lifecycle')

    const options = { profile, timeScale, maxWaiting: outboxLimit, maxRecords: outboxLimit, clock: systemClock }
    const delivered = deliveryPrinter(values, screen)
    const outbox = new Outbox({ ...options, changes: new Changes(), triggered() {}, delivered })
    try {
      const behaviour = { format, ...(sign && { sign }), ...(fault && { fault }) }
      for (const [index, event] of events.entries()) {
        if (index > 0) await pause(stepMs * timeScale, undefined, { signal: screen.signal })
        outbox.send({ id: 'receiver', url: to }, payloadOf(media, event, systemClock()), behaviour)
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

function eventsFrom({ positionals: [type = ''], values, given }: CommandInput<typeof flags>) {
  const { title = 'Untitled.mp4', qualities = ['360p', '720p'], fails = type === 'encoding.failed' } = values
  if (type !== 'lifecycle' && given.has('fails')) throw new UsageError('--fails goes with lifecycle')
  const media = { id: randomUUID(), userId: randomUUID(), title, qualities, fails }
  const life = lifecycleOf(media)
  if (type === 'lifecycle') return { media, events: life }
  const known = eventTypes.find((each) => each === type)
  if (known === undefined) {
    throw new UsageError(`there is no type '${type}': give one of ${types.join(', ')}${suggestion(type, types)}`)
  }
  return { media, events: [life.find((event) => event.type === known) ?? { type: known }] }
}

/** Waits until every event is acknowledged or given up. An abort closes the outbox. */
async function untilIdle(outbox: Outbox, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  const stop = () => void outbox.close()
  signal.addEventListener('abort', stop)
  await outbox.idle()
  signal.removeEventListener('abort', stop)
  signal.throwIfAborted()
}
