import { WebhookError } from '../../src/errors.ts'
import type { EventType, MediaEvent } from '../../src/events/media-service/catalogue.ts'
import type {
  AcceptedEvent,
  ActivityObserver,
  Attempt,
  AttemptResult,
  EventOrder,
  ExpectationChanges,
  Handle,
  HandlerName,
  Inbox,
  InboxDefinition,
  InboxHost,
} from '../../src/inbox/inbox.ts'
import type { InboxStats, UnreadableDelivery } from '../../src/inbox/reading.ts'
import { silent } from './silent.ts'

/** An attempt started by an inbox. The test decides how it ends. */
export interface Call extends AcceptedEvent {
  readonly attempt: Attempt
  finish: (result?: AttemptResult) => void
}

export interface Calls {
  /** Resolves with the next attempt once it starts. Rejects after 30 s. */
  next(): Promise<Call>
  /** `true` if an attempt has started that `next` has not returned. */
  readonly hasStarted: boolean
  /** Ends all open attempts, and later ones at once, so that the inbox can close. */
  finishAll(): void
}

/** Longest wait for an inbox (ms). Generous for busy machines: a passing check continues as soon as it can. */
const maxWaitMs = 30_000

/** One array: a new one would be published as a change. */
const handlers: readonly HandlerName[] = [{ name: 'a' }, { name: 'b' }]

/** Parses an unreadable delivery whose body is the key of an event in JSON. */
async function parseKey({ body, eventId, principal }: UnreadableDelivery): Promise<readonly MediaEvent[]> {
  const [, key] = /^"(.*)"$/.exec(new TextDecoder().decode(body)) ?? []
  if (key === undefined) throw new WebhookError('malformed', 'the delivery still cannot be parsed')
  const { event } = eventOf(eventId ?? key)
  return [{ ...event, principal }]
}

/** Opens an inbox whose attempts the test ends. */
export function openInbox(
  definition: InboxDefinition,
  logger = silent,
  order?: EventOrder,
  ack?: InboxHost['ack'],
): {
  readonly inbox: Inbox
  readonly calls: Calls
  readonly changes: Map<string, ExpectationChanges>
  readonly observers: readonly ActivityObserver[]
  /** Keys of the events that became dead letters without an attempt. */
  readonly deadLettered: readonly string[]
} {
  const started: Call[] = []
  const waiting: ((call: Call) => void)[] = []
  const open = new Set<Call>()
  let isFinishing = false

  const handle: Handle = (accepted, attempt) =>
    new Promise((resolve) => {
      const call: Call = {
        ...accepted,
        attempt,
        finish(result = { status: 'done' }) {
          open.delete(call)
          resolve(result)
        },
      }
      if (isFinishing) return call.finish()
      open.add(call)
      const resolveNext = waiting.shift()
      if (resolveNext === undefined) started.push(call)
      else resolveNext(call)
    })
  const observers: ActivityObserver[] = []
  const changes = new Map<string, ExpectationChanges>()
  const deadLettered: string[] = []
  const inbox = definition.open({
    handle,
    handlersOf: () => ['a', 'b'],
    handlers: () => handlers,
    expectations: ({ event }) => changes.get(event.key),
    parse: parseKey,
    logger,
    order,
    ack,
    deadLettered: ({ event }) => deadLettered.push(event.key),
    observe: (observer) => observers.push(observer),
  })
  const calls: Calls = {
    get hasStarted() {
      return started.length > 0
    },
    next() {
      const call = started.shift()
      if (call !== undefined) return Promise.resolve(call)
      const next = new Promise<Call>((resolve, reject) => {
        const resolveNext = (next: Call) => {
          clearTimeout(timer)
          resolve(next)
        }
        const timer = setTimeout(() => {
          waiting.splice(waiting.indexOf(resolveNext), 1)
          reject(new Error(`no attempt started within ${maxWaitMs} ms`))
        }, maxWaitMs)
        waiting.push(resolveNext)
      })
      // The check may end before its next attempt.
      next.catch(() => {})
      return next
    },
    finishAll() {
      isFinishing = true
      for (const call of open) call.finish()
    },
  }
  return { inbox, calls, changes, observers, deadLettered }
}

/** Creates an event, by default in its own media item. */
export function eventOf(key: string, mediaId = `media of ${key}`): AcceptedEvent {
  const type: EventType = 'encoding.finished'
  const emittedAt = '2026-03-01T12:00:00.123456789Z'
  const event: MediaEvent & { readonly data: unknown } = {
    type,
    key,
    format: 'flat',
    source: 'delivery',
    emittedAt: new Date(emittedAt),
    mediaId,
    mediaType: 'video',
    qualities: ['360p', '720p'],
    title: '映画.mp4',
    status: 'done',
    principal: 'acme',
    test: false,
    issues: ['user_id'],
    payload: {
      type,
      emitted_at: emittedAt,
      media_id: mediaId,
      qualities: '360p,720p',
      user_id: ['u1'],
      extra: { nested: [1, null] },
    },
    // Only events of other senders have it.
    data: { nested: [null] },
  }
  return { event, receivedAt: new Date('2026-03-01T12:00:01.500Z') }
}

/** Waits until a condition holds. Polls every 2 ms; throws after 30 s. */
export async function until(holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + maxWaitMs
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`the condition did not hold within ${maxWaitMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

export async function countsOf(inbox: Inbox): Promise<InboxStats> {
  const { waiting, running, retrying, deadLetters } = await inbox.stats()
  return { waiting, running, retrying, deadLetters }
}
