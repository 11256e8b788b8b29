import { isPrompt } from './acknowledges.ts'
import type { Endpoint } from './endpoint.ts'
import { type Finding, failed, ok, told } from './finding.ts'
import type { Reply } from './probe.ts'

const mend = 'an event must be claimed by its key before it is handled, as createReceiver() does'

/** Whether an event that is delivered twice is acknowledged twice, and handled once as far as can be seen. */
export async function* handlesDuplicates(endpoint: Endpoint): AsyncIterable<Finding> {
  const check = 'acknowledges a duplicate, and handles it once'
  const event = endpoint.newEvent()
  const first = await endpoint.deliver(event)
  const second = await endpoint.deliver(event)
  if (!isPrompt(second) && !isInProgress(second)) {
    yield failed(check, told(second), 'answer a duplicate 200, at once: any other answer asks for it again')
  } else yield judge(check, [first, second], ['accepted', 'handled'])
}

const atOnce = 5

/** The same, with duplicates at the same instant. */
export async function* handlesConcurrentDuplicates(endpoint: Endpoint): AsyncIterable<Finding> {
  const check = `acknowledges ${atOnce} duplicates at once, and handles one`
  const event = endpoint.newEvent()
  const replies = await Promise.all(Array.from({ length: atOnce }, () => endpoint.deliver(event)))
  const refused = replies.find((reply) => reply.status !== 200 && !isInProgress(reply))
  if (refused !== undefined) yield failed(check, told(refused), 'answer every duplicate 200')
  // Those that arrive while it is handled may wait for the same result.
  else yield judge(check, replies, ['accepted'])
}

/** Whether another process, of those that share a store, has the event: the sender must not forget it yet. */
const isInProgress = ({ outcome }: Reply): boolean => outcome === 'in_progress'

/** @param once the outcomes that only one of the deliveries may have */
function judge(check: string, replies: readonly Reply[], once: readonly string[]): Finding {
  const outcomes = replies.map(({ outcome = '' }) => outcome)
  const taken = outcomes.filter((outcome) => once.includes(outcome)).length
  if (taken > 1) return failed(check, `${taken} deliveries of one event were ${outcomes[0]}`, mend)
  const inProgress = replies.filter(isInProgress).length
  if (inProgress > 0) return ok(check, `${inProgress} answered 503 while another process has the event`)
  const duplicates = outcomes.filter((outcome) => outcome === 'duplicate').length
  if (duplicates > 0) return ok(check, `200 each time, ${duplicates} as duplicate`)
  if (outcomes.includes('ignored')) return ok(check, '200; ignored: no handler is registered for encoding.started')
  return ok(check, '200 each time; whether it was handled once cannot be seen from outside')
}
