import { type MaybePromise, type Receiver, WebhookError } from '../../src/index.ts'

/** A message as SQS passes it to a function. */
export interface SqsRecord {
  readonly messageId: string
  readonly body: string
  readonly attributes: { readonly ApproximateReceiveCount: string; readonly MessageGroupId?: string | undefined }
  readonly eventSourceARN: string
}

/** A batch of messages. */
export interface SqsEvent {
  readonly Records: readonly SqsRecord[]
}

/** The messages that SQS has to deliver again. It deletes the others. */
export interface SqsBatchResponse {
  batchItemFailures: { itemIdentifier: string }[]
}

type Consumes = Pick<Receiver, 'handle'> & Partial<Pick<Receiver, 'inbox' | 'setup'>>

/**
 * Consumes the messages that `queueInbox` has sent to SQS. Each message that is not done is reported as a failure. SQS
 * delivers it again, and moves it to the dead-letter queue after `maxReceiveCount` deliveries: set that to
 * `retry.attempts`. Set `ReportBatchItemFailures` in the event source mapping. Without it, Lambda ignores the report
 * and deletes every message of the batch.
 *
 * ```ts
 * export const consume = sqsHandler(receiver)
 * ```
 *
 * Messages are handled at the same time, those of a group of a FIFO queue one after another. After a failure, the rest
 * of its group is not handled and is also reported, so that the order holds.
 * @param receiver the receiver, or a function that makes it at the first batch, and may return a promise
 * @returns a function that rejects when the receiver cannot be made or the event is not of SQS. SQS then delivers the
 * whole batch again.
 * @throws WebhookError `invalid_option` when it is given no receiver, or one whose inbox has no queue
 */
export function sqsHandler(
  receiver: Consumes | (() => MaybePromise<Consumes>),
): (event: SqsEvent) => Promise<SqsBatchResponse> {
  const given = typeof receiver === 'function' ? undefined : checkConsumer(receiver)
  let making: Promise<Consumes> | undefined
  const makeOnce = async (): Promise<Consumes> => {
    try {
      return checkConsumer(await (receiver as () => MaybePromise<Consumes>)())
    } catch (error) {
      making = undefined
      throw error
    }
  }
  return async (event) => {
    const groups = groupsOf(event)
    making ??= given === undefined ? makeOnce() : Promise.resolve(given)
    const consumer = await making
    // Every group ends before the answer: Lambda stops what still runs afterwards.
    const failed = await Promise.allSettled(groups.map((records) => handleInOrder(consumer, records)))
    const rejection = failed.find(({ status }) => status === 'rejected')
    if (rejection !== undefined) throw (rejection as PromiseRejectedResult).reason
    const failures = failed.flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
    return { batchItemFailures: failures.map(({ messageId }) => ({ itemIdentifier: messageId })) }
  }
}

function checkConsumer(receiver: Consumes): Consumes {
  if (typeof receiver?.handle !== 'function') {
    throw invalid('give it a receiver; are the parentheses of createReceiver() missing?')
  }
  const { inbox, setup } = receiver
  if (inbox !== undefined && inbox.handleMessage === undefined) {
    throw invalid(`its receiver needs queueInbox; ${setup?.inbox.name ?? 'this inbox'} has no queue`)
  }
  return receiver
}

/** Splits a batch into what can be handled at the same time: the groups of a FIFO queue, or single messages. */
function groupsOf(event: SqsEvent): readonly (readonly SqsRecord[])[] {
  const records: readonly SqsRecord[] | undefined = event?.Records
  if (!Array.isArray(records) || !records.every(isRecord)) throw invalid('the event has no messages of SQS')
  const groups = new Map<string, SqsRecord[]>()
  for (const record of records) {
    // Standard queues also have groups, for fairness, and keep no order.
    const isOrdered = record.eventSourceARN.endsWith('.fifo')
    const group = isOrdered ? `group ${record.attributes.MessageGroupId}` : `message ${record.messageId}`
    const members = groups.get(group)
    if (members === undefined) groups.set(group, [record])
    else members.push(record)
  }
  return [...groups.values()]
}

const isRecord = (record: Partial<SqsRecord> | null): boolean =>
  [record?.messageId, record?.body, record?.attributes?.ApproximateReceiveCount, record?.eventSourceARN].every(
    (field) => typeof field === 'string',
  )

/** Handles messages until one of them is not done. Returns that one and the rest. */
async function handleInOrder(receiver: Consumes, records: readonly SqsRecord[]): Promise<readonly SqsRecord[]> {
  for (const [index, { body, attributes }] of records.entries()) {
    const { status } = await receiver.handle(body, { attempt: Number(attributes.ApproximateReceiveCount) })
    if (status !== 'done') return records.slice(index)
  }
  return []
}

const invalid = (message: string): WebhookError => new WebhookError('invalid_option', `sqsHandler: ${message}`)
