import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

export interface SqsQueueOptions {
  readonly name: string
  /** Keeps the order within each group, and drops messages with a deduplication id of the last 5 minutes. */
  readonly fifo?: boolean
  /** The time for which a received message is hidden, in ms. */
  readonly visibilityMs: number
  /** The queue of a message that was received that often and not deleted. */
  readonly redrive?: { readonly maxReceiveCount: number; readonly to: SqsQueue }
}

export interface SqsMessage {
  readonly messageId: string
  readonly body: string
  readonly group: string | undefined
  receiveCount: number
  receiptHandle: string
  visibleAt: number
}

/** An error that SQS answers with. */
export class SqsError extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

const idPattern = /^[\w!"#$%&'()*+,\-./:;<=>?@[\\\]^`{|}~]{1,128}$/
const deduplicationMs = 5 * 60_000

/** A queue as SQS keeps it. */
export class SqsQueue {
  readonly name: string
  readonly isFifo: boolean
  readonly messages: SqsMessage[] = []
  /** The number of messages that were sent, without those that were dropped as duplicates. */
  accepted = 0
  readonly #options: SqsQueueOptions
  readonly #deduplicated = new Map<string, { readonly messageId: string; readonly until: number }>()

  constructor(options: SqsQueueOptions) {
    this.#options = options
    this.name = options.name
    this.isFifo = options.fifo ?? false
  }

  send(body: string, group?: string, deduplicationId?: string): string {
    if (Buffer.byteLength(body) > 1_048_576) throw new SqsError('InvalidMessageContents', 'a message is 1 MiB at most')
    checkId('MessageGroupId', group, this.isFifo)
    checkId('MessageDeduplicationId', deduplicationId, this.isFifo)
    if (deduplicationId !== undefined && !this.isFifo) {
      throw new SqsError('InvalidParameterValue', 'MessageDeduplicationId is for FIFO queues')
    }
    const earlier = deduplicationId === undefined ? undefined : this.#deduplicated.get(deduplicationId)
    if (earlier !== undefined && earlier.until > Date.now()) return earlier.messageId
    const messageId = randomUUID()
    if (deduplicationId !== undefined) {
      this.#deduplicated.set(deduplicationId, { messageId, until: Date.now() + deduplicationMs })
    }
    this.accepted++
    this.messages.push({ messageId, body, group, receiveCount: 0, receiptHandle: '', visibleAt: 0 })
    return messageId
  }

  /** Receives up to `max` messages, and waits up to `waitMs` for the first. */
  async receive(max: number, waitMs = 0, visibilityMs = this.#options.visibilityMs): Promise<readonly SqsMessage[]> {
    const deadline = Date.now() + waitMs
    for (;;) {
      const received = this.#take(max, visibilityMs)
      if (received.length > 0 || Date.now() >= deadline) return received
      await sleep(5)
    }
  }

  #take(max: number, visibilityMs: number): readonly SqsMessage[] {
    const now = Date.now()
    this.#moveDead(now)
    const blocked = new Set<string | undefined>()
    const taken: SqsMessage[] = []
    for (const message of this.messages) {
      if (taken.length === max) break
      const isHidden = message.visibleAt > now
      // The messages of a group wait for those before them, which may be in flight.
      if (this.isFifo && isHidden) blocked.add(message.group)
      if (!isHidden && !blocked.has(message.group)) taken.push(message)
    }
    for (const message of taken) {
      message.receiveCount++
      message.receiptHandle = randomUUID()
      message.visibleAt = now + visibilityMs
    }
    return taken.map((message) => ({ ...message }))
  }

  #moveDead(now: number): void {
    const { redrive } = this.#options
    if (redrive === undefined) return
    const isDead = ({ visibleAt, receiveCount }: SqsMessage) =>
      visibleAt <= now && receiveCount >= redrive.maxReceiveCount
    for (const message of this.messages.filter(isDead)) {
      this.messages.splice(this.messages.indexOf(message), 1)
      redrive.to.messages.push({ ...message, visibleAt: 0 })
    }
  }

  delete(receiptHandle: string): void {
    const message = this.#received(receiptHandle)
    if (message !== undefined) this.messages.splice(this.messages.indexOf(message), 1)
  }

  changeVisibility(receiptHandle: string, visibilityMs: number): void {
    const message = this.#received(receiptHandle)
    if (message === undefined) throw new SqsError('MessageNotInflight', 'the message is not in flight')
    message.visibleAt = Date.now() + visibilityMs
  }

  /** A handle of an earlier receipt is invalid once the message was received again. */
  #received(receiptHandle: string): SqsMessage | undefined {
    return this.messages.find((message) => message.receiptHandle === receiptHandle)
  }
}

function checkId(name: string, id: string | undefined, isNeeded: boolean): void {
  if (id === undefined && isNeeded) throw new SqsError('MissingParameter', `the request must contain ${name}`)
  if (id !== undefined && !idPattern.test(id)) {
    throw new SqsError('InvalidParameterValue', `${name} has 1 to 128 letters, digits and punctuation marks`)
  }
}

export const md5 = (text: string): string => createHash('md5').update(text).digest('hex')
