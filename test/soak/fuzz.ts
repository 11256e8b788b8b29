import { setTimeout as sleep } from 'node:timers/promises'
import type { Acknowledgement } from '../../src/index.ts'
import { seeded } from '../support/seeded.ts'
import { type FuzzedDelivery, fuzzedDelivery } from './fuzz/deliveries.ts'
import { type FuzzedReceiver, openReceivers } from './fuzz/receivers.ts'
import type { Part } from './part.ts'

const batchSize = 2_000
/** The failures after which the run ends. */
const maxFaults = 5

/** The statuses that a fuzzed delivery may get. 500 and 503 are the receiver's own faults. */
const allowed = new Set([200, 400, 401, 405, 413, 415])

/** Gives fuzzed deliveries to receivers. Each has to be answered, and what was accepted has to be handled. */
export const fuzz: Part = async ({ bodies, from, seed }) => {
  const { receivers, close } = await openReceivers()
  const faults: string[] = []
  const statuses = new Map<number, number>()
  const startedAt = Date.now()
  const prototype = namesOf(Object.prototype)

  const give = async (index: number) => {
    const random = seeded(seed * 7_919 + index * 104_729)
    const pick = random()
    const target = receivers.find(({ upTo }) => pick < upTo) as FuzzedReceiver
    const fuzzed = fuzzedDelivery(random)
    const answer = await target.receiver.receive(fuzzed.delivery).catch((error: unknown) => String(error))
    const fault = faultOf(answer)
    if (fault !== undefined) faults.push(reportOf(fault, fuzzed, target, seed, index))
    if (typeof answer === 'string') return
    statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
    if (answer.outcome === 'accepted') target.accepted++
  }

  try {
    let given = from
    while (given < from + bodies && faults.length < maxFaults) {
      const end = Math.min(given + batchSize, from + bodies)
      const batch: Promise<void>[] = []
      while (given < end) batch.push(give(given++))
      await Promise.all(batch)
      if (namesOf(Object.prototype) !== prototype) faults.push(`Object.prototype was changed before body ${given}`)
      await handled(receivers, 1_000)
    }
    await handled(receivers, 0)
    const seconds = (Date.now() - startedAt) / 1_000
    const counts = [...statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${count} times ${status}`)
    console.log(`fuzz: ${given - from} bodies in ${seconds.toFixed(0)} s: ${counts.join(', ')} (seed ${seed})`)
    for (const { name, accepted, handled } of receivers)
      if (accepted !== handled) faults.push(`${name}: ${accepted} events were accepted, and ${handled} handled`)
    return faults
  } finally {
    await close()
  }
}

const namesOf = (object: object) => Object.getOwnPropertyNames(object).join()

/** Returns the reason why an answer is wrong. */
function faultOf(answer: Acknowledgement | string): string | undefined {
  if (typeof answer === 'string') return `it threw ${answer}`
  const { status, outcome, body, headers } = answer
  if (!allowed.has(status)) return `it was answered ${status} ${body}`
  if (headers['content-length'] !== `${Buffer.byteLength(body)}`) return `the answer has the wrong length: ${body}`
  const { code, status: word } = JSON.parse(body)
  return (status === 200 ? word : code) === outcome ? undefined : `the answer ${body} is not ${outcome}`
}

function reportOf(
  fault: string,
  { bytes, headers, delivery }: FuzzedDelivery,
  { name }: FuzzedReceiver,
  seed: number,
  index: number,
) {
  const text = Buffer.from(bytes.subarray(0, 300)).toString('latin1')
  const { method, url } = delivery
  return (
    `body ${index} (${name}): ${fault}\n  ${JSON.stringify({ method, url, headers, bytes: bytes.length, text })}\n` +
    `  again: npm run soak -- --seed ${seed} --from ${index} --bodies 1 fuzz`
  )
}

/** Waits until at most so many events are left in each inbox. */
async function handled(receivers: readonly FuzzedReceiver[], most: number): Promise<void> {
  for (const { receiver } of receivers) {
    for (;;) {
      const { waiting, running, retrying } = await receiver.inbox.stats()
      if (waiting + running + retrying <= most) break
      await sleep(5)
    }
  }
}
