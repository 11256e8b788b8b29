import type { SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda'
import { md5, type SqsMessage, type SqsQueue } from './queue.ts'

/** The function that Lambda's event source mapping invokes. */
export type Invoke = (event: SQSEvent) => Promise<SQSBatchResponse>

/**
 * Polls a queue and invokes a function with batches, as Lambda's event source mapping does with
 * `ReportBatchItemFailures`. It deletes the messages that the function does not report, and none if the invocation
 * fails.
 */
export class EventSource {
  readonly #queue: SqsQueue
  readonly #invoke: Invoke
  readonly #pollers: Promise<void>[]
  readonly batches: SQSEvent[] = []
  #isStopped = false

  constructor(queue: SqsQueue, invoke: Invoke, concurrency = 2) {
    this.#queue = queue
    this.#invoke = invoke
    this.#pollers = Array.from({ length: concurrency }, () => this.#poll())
  }

  async #poll(): Promise<void> {
    while (!this.#isStopped) {
      const messages = await this.#queue.receive(10, 20)
      if (messages.length > 0) await this.#handle(messages)
    }
  }

  async #handle(messages: readonly SqsMessage[]): Promise<void> {
    const event = { Records: messages.map((message) => this.#record(message)) }
    this.batches.push(event)
    try {
      const { batchItemFailures } = await this.#invoke(event)
      const failed = new Set(batchItemFailures.map(({ itemIdentifier }) => itemIdentifier))
      for (const message of messages) if (!failed.has(message.messageId)) this.#queue.delete(message.receiptHandle)
    } catch {
      // The messages become visible again.
    }
  }

  #record({ messageId, receiptHandle, body, receiveCount, group }: SqsMessage): SQSRecord {
    return {
      messageId,
      receiptHandle,
      body,
      attributes: {
        ApproximateReceiveCount: `${receiveCount}`,
        SentTimestamp: `${Date.now()}`,
        SenderId: 'a sender',
        ApproximateFirstReceiveTimestamp: `${Date.now()}`,
        ...(group !== undefined && { MessageGroupId: group }),
      },
      messageAttributes: {},
      md5OfBody: md5(body),
      eventSource: 'aws:sqs',
      eventSourceARN: `arn:aws:sqs:eu-west-1:000000000000:${this.#queue.name}`,
      awsRegion: 'eu-west-1',
    }
  }

  /** Stops once the invocations that run have ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#pollers)
  }
}
