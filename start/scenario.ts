import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { lifecycle, type Media, testPayload } from '../src/emulator/lifecycle.ts'
import { flatBody, type Payload } from '../src/emulator/payload.ts'
import { createSender } from '../src/emulator/sender.ts'
import type { Ledger } from './ledger.ts'

/** Where the scenario is played. */
export interface Stage {
  /** The webhook's URL, its secret included. */
  readonly webhook: string
  readonly forgedWebhook: string
  readonly ledger: Ledger
  readonly heading: (text: string) => void
  /** Lets the next delivery be refused in front of the receiver. */
  readonly refuseNext: () => void
  /** Resolves when what was accepted has been handled. */
  readonly settled: () => Promise<void>
}

type Act = (stage: Stage) => Promise<unknown>

/** Plays the service, from three plain lives to what a receiver must not fall for. */
export async function play(stage: Stage): Promise<void> {
  for (const [heading, act] of scenes()) {
    stage.heading(heading)
    await act(stage)
    await stage.settled()
  }
}

/** A payload that nobody has sent yet. */
export function freshPayload(): Payload {
  return lifecycle(newMedia('Try me.mp4', ['360p', '720p'])).at(-1) as Payload
}

function scenes(): readonly (readonly [heading: string, act: Act])[] {
  const lives = [
    newMedia('Holiday.mp4', ['360p', '720p']),
    newMedia('Graphs & Trees.mp4', ['720p', '360p', '1080p']),
    { ...newMedia('Broken.mov', ['360p', '720p']), fails: true },
  ].map(lifecycle)
  const interview = newMedia('Interview.mp4', ['480p'])
  const [received, started, partial, finished] = lifecycle(interview) as [Payload, Payload, Payload, Payload]
  return [
    ['Three media from their upload to their end; the third fails', liveAll(lives)],
    ['A delivery refused once, as by a load balancer in a deployment, and its retry', sendRefusedOnce(received)],
    ['One event delivered five times at the same instant', sendAtOnce(started, 5)],
    ['A late event, out of order: its media has finished', sendInTurn([finished, partial])],
    ['An event of an unknown type', sendInTurn([{ ...finished, type: 'captions.finished' }])],
    ['The test delivery: no retry, 200 within a second', sendTest],
    ['A forged delivery: the token is wrong', sendForged],
    ['A malformed delivery: its JSON breaks off', sendMalformed],
  ]
}

const sender = createSender({ timeScale: 0.1 })
const testSender = createSender({ timeoutMs: 1_000 })
const userId = randomUUID()

async function send({ webhook, ledger }: Stage, payload: Payload): Promise<void> {
  ledger.sent.push({ payload, deliveries: await sender.send(webhook, flatBody(payload)) })
}

const sendInTurn =
  (payloads: readonly Payload[]): Act =>
  async (stage) => {
    for (const payload of payloads) {
      await send(stage, payload)
      await pause(20)
    }
  }

const liveAll =
  (lives: readonly (readonly Payload[])[]): Act =>
  (stage) =>
    Promise.all(lives.map((life) => sendInTurn(life)(stage)))

const sendRefusedOnce =
  (payload: Payload): Act =>
  (stage) => {
    stage.refuseNext()
    return send(stage, payload)
  }

const sendAtOnce =
  (payload: Payload, times: number): Act =>
  (stage) =>
    Promise.all(Array.from({ length: times }, () => send(stage, payload)))

const sendTest: Act = async ({ webhook, ledger }) => {
  const payload = testPayload(userId, now())
  ledger.sent.push({ payload, deliveries: [await testSender.deliver(webhook, flatBody(payload))] })
}

const sendForged: Act = async ({ forgedWebhook, ledger }) => {
  const delivery = await sender.deliver(forgedWebhook, flatBody(freshPayload()))
  ledger.bad.push({ what: 'forged', status: 401, delivery })
}

const sendMalformed: Act = async ({ webhook, ledger }) => {
  const delivery = await sender.deliver(webhook, flatBody(freshPayload()).slice(0, -20))
  ledger.bad.push({ what: 'malformed', status: 400, delivery })
}

/** A media of the scenario's user that was uploaded a minute ago. */
function newMedia(title: string, qualities: readonly string[]): Media {
  return { id: randomUUID(), userId, title, qualities, receivedAt: now() - 60_000_000_000n }
}

/** In nanoseconds since 1970. The clock gives milliseconds; the rest is there to be seen in `emitted_at`. */
const now = (): bigint => BigInt(Date.now()) * 1_000_000n + (process.hrtime.bigint() % 1_000_000n)
