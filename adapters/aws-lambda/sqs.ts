import { type MaybePromise, type Receiver, WebhookError } from '../../src/index.ts'

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

type Consumes = Pick<Receiver, 'handle'> & Partial<Pick<Receiver, 'inbox' | 'setup'>>

/**
 * Consumes what `queueInbox` sent to SQS, and reports unfinished messages as failures. SQS redelivers those, and moves
 * them to the dead-letter queue after `maxReceiveCount` deliveries: set that to `retry.attempts`. The event source
 * mapping must have `ReportBatchItemFailures`, or Lambda ignores the report and deletes the whole batch.
 *
 * ```ts
 * export const consume = sqsHandler(receiver)
 * ```
 *
 * Messages run concurrently, those of a FIFO group in order: a failure skips and reports the rest of its group too.
 * @param receiver the receiver, or a function (sync or async) that makes it at the first batch
 * @returns a function that rejects, so SQS redelivers the batch, if the receiver can't be made or the event isn't SQS's
 * @throws WebhookError `invalid_option` without a receiver, or if its inbox has no queue
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
    // Wait for every group: Lambda freezes what still runs after the answer.
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

/** Splits a batch into what can run concurrently: FIFO message groups, or single messages. */
function groupsOf(event: SqsEvent): readonly (readonly SqsRecord[])[] {
  const records: readonly SqsRecord[] | undefined = event?.Records
  if (!Array.isArray(records) || !records.every(isRecord)) throw invalid('the event has no SQS messages')
  const groups = new Map<string, SqsRecord[]>()
  for (const record of records) {
    // Standard queues have groups too, for fairness only.
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

/** Handles messages in order until one fails. Returns it and the rest. */
async function handleInOrder(receiver: Consumes, records: readonly SqsRecord[]): Promise<readonly SqsRecord[]> {
  for (const [index, { body, attributes }] of records.entries()) {
    const { status } = await receiver.handle(body, { attempt: Number(attributes.ApproximateReceiveCount) })
    if (status !== 'done') return records.slice(index)
  }
  return []
}

const invalid = (message: string): WebhookError => new WebhookError('invalid_option', `sqsHandler: ${message}`)
