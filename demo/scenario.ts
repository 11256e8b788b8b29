import { randomUUID } from 'node:crypto'
import type { Client } from '../src/service/client/index.ts'
import type { DeliveryRecord, Emulator, Fault, MediaInput } from '../src/service/emulator/index.ts'
import { makePayload } from '../src/service/emulator/media/lifecycle.ts'
import { createCourier } from '../src/service/emulator/sending/courier.ts'
import { systemClock } from '../src/service/emulator/shared/clock.ts'
import { flatBody } from '../src/testing/payload.ts'
import type { Ledger } from './ledger.ts'

/** The participants of the scenario. */
export interface Stage {
  readonly emulator: Emulator
  readonly client: Client
  /** The receiver's webhook in the emulator. */
  readonly webhook: { readonly id: string; readonly url: string }
  readonly forgedUrl: string
  readonly ledger: Ledger
  readonly heading: (text: string) => void
  /** Makes the load balancer reject the next delivery. */
  readonly rejectNext: () => void
  /** Resolves when every accepted event has been handled. */
  readonly handled: () => Promise<void>
}

type Act = (stage: Stage) => Promise<unknown>

/** Plays the scenes in order: first three plain media items, then faults, then deliveries that must be rejected. */
export async function play(stage: Stage): Promise<void> {
  for (const [heading, act] of scenes) {
    stage.heading(heading)
    await act(stage)
    await stage.handled()
  }
}

const upload =
  (...inputs: readonly MediaInput[]): Act =>
  async ({ emulator }) => {
    for (const input of inputs) emulator.addMedia(input)
    await emulator.settled()
  }

const uploadRejectedOnce: Act = async (stage) => {
  stage.rejectNext()
  await upload({ title: 'Interview.mp4', qualities: ['480p'] })(stage)
}

const uploadWith =
  (fault: Fault, title: string): Act =>
  async (stage) => {
    stage.emulator.behave(stage.webhook.id, { fault })
    await upload({ title, qualities: ['360p'] })(stage)
    stage.emulator.behave(stage.webhook.id, {})
  }

const check: Act = ({ client, webhook }) => client.webhook.check(webhook.id)

/** Sends the event itself, because the emulator emits only the types that the service has. */
const sendUnknownType: Act = async ({ webhook, ledger }) => {
  const payload = { ...freshPayload(), type: 'captions.finished' }
  ledger.sent.push({ payload, deliveries: [await deliver(webhook.url, flatBody(payload))] })
}

const sendForged: Act = async ({ forgedUrl, ledger }) => {
  ledger.bad.push({ what: 'forged', status: 401, delivery: await deliver(forgedUrl, flatBody(freshPayload())) })
}

const sendMalformed: Act = async ({ webhook, ledger }) => {
  const delivery = await deliver(webhook.url, flatBody(freshPayload()).slice(0, -20))
  ledger.bad.push({ what: 'malformed', status: 400, delivery })
}

const deliver = (url: string, body: string): Promise<DeliveryRecord> => createCourier().deliver(url, body)

const freshPayload = () => {
  const media = { id: randomUUID(), userId: randomUUID(), title: 'Try me.mp4', qualities: ['360p', '720p'] }
  return makePayload(media, { type: 'encoding.finished' }, systemClock())
}

const scenes: readonly (readonly [heading: string, act: Act])[] = [
  [
    'Three media from upload to end; the third fails',
    upload(
      { title: 'Holiday.mp4' },
      { title: 'Graphs & Trees.mp4', qualities: ['720p', '360p', '1080p'] },
      { title: 'Broken.mov', fails: true },
    ),
  ],
  ['A delivery rejected once, as by a load balancer during a deployment, and its retry', uploadRejectedOnce],
  ['Every event delivered twice at the same instant', uploadWith('concurrent-duplicate', 'Twins.mp4')],
  ['Every event delivered again after it was acknowledged', uploadWith('duplicate', 'Encore.mp4')],
  ['Events that overtake one another', uploadWith('reorder', 'Shuffle.mp4')],
  ['Bodies corrupted in transit, and their retries', uploadWith('corrupt-body', 'Static.mp4')],
  ['Connections cut in the middle of the body, and their retries', uploadWith('cut-connection', 'Cliffhanger.mp4')],
  ['Answers that never reach the service, so it sends again', uploadWith('lost-answer', 'Echo.mp4')],
  ['An event of an unknown type', sendUnknownType],
  ['The test delivery: one attempt, which needs 200 within a second', check],
  ['A forged delivery: the token is wrong', sendForged],
  ['A malformed delivery: its JSON is cut off', sendMalformed],
]
