import { createReceiver, type MaybePromise, type Receiver, WebhookError } from '../../src/index.ts'

/** An SQS message as Lambda passes it. */
export interface SqsRecord {
  readonly messageId: string
  readonly body: string
  readonly attributes: { readonly ApproximateReceiveCount: string; readonly MessageGroupId?: string | undefined }
  readonly eventSourceARN: string
}

/** A batch of SQS messages. */
export interface SqsEvent {
  readonly Records: readonly SqsRecord[]
}

/** The messages that SQS must redeliver. It deletes the others. */
export interface SqsBatchResponse {
  batchItemFailures: { itemIdentifier: string }[]
}

type QueueReceiver = Pick<Receiver, 'handle'> & Partial<Pick<Receiver, 'inbox' | 'setup'>>

/**
 * Handles messages that `queueInbox` sent to SQS, and reports failed ones. SQS redelivers failed messages, and moves
 * them to the dead-letter queue after `maxReceiveCount` deliveries: set that to `retry.attempts`. The event source
 * mapping must have `ReportBatchItemFailures`, or Lambda ignores the report and deletes the whole batch.
 *
 * ```ts
 * export const consume = sqsHandler(receiver)
 * ```
 *
 * Handles messages concurrently, but each FIFO group in order: after a failure, the rest of the group fails too.
 * @param receiver the receiver, or a factory (sync or async), called on the first batch
 * @returns the Lambda handler. Rejects (SQS redelivers the batch) if the factory fails or the event isn't from SQS
 * @throws WebhookError `invalid_option` without a receiver, or if its inbox has no queue
 */
export function sqsHandler(
  receiver: QueueReceiver | (() => MaybePromise<QueueReceiver>),
): (event: SqsEvent) => Promise<SqsBatchResponse> {
  if (typeof receiver !== 'function' || (receiver as unknown) === createReceiver) {
    const consumer = checkConsumer(receiver as QueueReceiver)
    return async (event) => handleBatch(consumer, groupRecords(event))
  }
  const make = async () => checkConsumer(await receiver())
  let making: Promise<QueueReceiver> | undefined
  return async (event) => {
    const groups = groupRecords(event)
    // Reset in a later microtask: a factory that throws does so before the assignment.
    making ??= make().catch((error) => {
      making = undefined
      throw error
    })
    return handleBatch(await making, groups)
  }
}

async function handleBatch(
  consumer: QueueReceiver,
  groups: readonly (readonly SqsRecord[])[],
): Promise<SqsBatchResponse> {
  // Wait for every group: Lambda freezes the process once the handler returns.
  const results = await Promise.allSettled(groups.map((records) => handleInOrder(consumer, records)))
  const rejection = results.find(({ status }) => status === 'rejected')
  if (rejection !== undefined) throw (rejection as PromiseRejectedResult).reason
  const failures = results.flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
  return { batchItemFailures: failures.map(({ messageId }) => ({ itemIdentifier: messageId })) }
}

function checkConsumer(receiver: QueueReceiver): QueueReceiver {
  if (typeof receiver?.handle !== 'function') {
    throw invalid('give it a receiver; are the parentheses of createReceiver() missing?')
  }
  const { inbox, setup } = receiver
  if (inbox !== undefined && inbox.handleMessage === undefined) {
    throw invalid(`its receiver needs queueInbox; ${setup?.inbox.name ?? 'this inbox'} has no queue`)
  }
  return receiver
}

/** Splits a batch by FIFO message group. In a standard queue, each message is its own group. */
function groupRecords(event: SqsEvent): readonly (readonly SqsRecord[])[] {
  const records: readonly SqsRecord[] | undefined = event?.Records
  if (!Array.isArray(records) || !records.every(isRecord)) throw invalid('the event has no SQS messages')
  const groups = new Map<string, SqsRecord[]>()
  for (const record of records) {
    // In a standard queue, MessageGroupId affects fairness, not order.
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

/** Handles messages in order until one fails. Returns the failed message and all after it. */
async function handleInOrder(receiver: QueueReceiver, records: readonly SqsRecord[]): Promise<readonly SqsRecord[]> {
  for (const [index, { body, attributes }] of records.entries()) {
    const { status } = await receiver.handle(body, { attempt: Number(attributes.ApproximateReceiveCount) })
    if (status !== 'done') return records.slice(index)
  }
  return []
}

const invalid = (message: string): WebhookError => new WebhookError('invalid_option', `sqsHandler: ${message}`)
