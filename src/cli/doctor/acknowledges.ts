import { testTimeoutMs } from '../../emulator/sending/profile.ts'
import type { Endpoint } from './endpoint.ts'
import { type Finding, failed, ok, told, wasAccepted } from './finding.ts'
import type { Reply } from './probe.ts'

/** What the service's test delivery asks for. */
export const isPrompt = ({ status, durationMs }: Reply): boolean => status === 200 && durationMs <= testTimeoutMs

const check = 'answers exactly 200 within 1 s'

/** Makes a test delivery, and says whether the endpoint took it at all. */
export async function acknowledges(endpoint: Endpoint): Promise<{ finding: Finding; accepted: boolean }> {
  const reply = await endpoint.deliver(endpoint.newEvent())
  const finding = isPrompt(reply) ? ok(check, told(reply)) : failed(check, told(reply), mendFor(reply, endpoint))
  return { finding, accepted: wasAccepted(reply) }
}

function mendFor({ status, problem }: Reply, { scheme }: Endpoint): string {
  if (problem?.startsWith('no answer within')) return 'acknowledge first and do the work afterwards'
  if (status === undefined) return 'is the server running, and is this its address?'
  if (status === 200) return 'acknowledge first and do the work afterwards: the test delivery is given 1 s'
  if (status < 300) return 'answer 200: the test delivery counts no other status as success'
  if (status < 400) return 'register the URL that it leads to: the service follows no redirect'
  if (status === 401 || status === 403) {
    return scheme === undefined
      ? 'say how deliveries are signed: --verify <scheme>, with its secret'
      : `is it this secret, and is ${scheme.scheme} what the endpoint verifies?`
  }
  if (status === 404 || status === 405) return 'is this the path of the endpoint? It has to take POST'
  if (status >= 500) return "the endpoint broke or cannot take events now: look at the server's log"
  return 'the endpoint refuses what the service sends: a JSON object, as application/json'
}

/** Whether it stands after all that was tried. */
export async function* stillAnswers(endpoint: Endpoint): AsyncIterable<Finding> {
  const check = 'still answers 200 within 1 s after all that'
  const reply = await endpoint.deliver(endpoint.newEvent())
  if (isPrompt(reply)) yield ok(check, told(reply))
  else yield failed(check, told(reply), "one of the deliveries above broke it: look at the server's log")
}

const burst = 20

/** Whether a burst of events is taken. */
export async function* takesBurst(endpoint: Endpoint): AsyncIterable<Finding> {
  const check = `answers ${burst} events at once, each 200`
  const replies = await Promise.all(Array.from({ length: burst }, () => endpoint.deliver(endpoint.newEvent())))
  const wrong = replies.filter(({ status }) => status !== 200)
  const [example] = wrong
  const slowest = Math.round(Math.max(...replies.map(({ durationMs }) => durationMs)))
  if (example === undefined) yield ok(check, `the slowest in ${slowest} ms`)
  else {
    yield failed(check, `${wrong.length} were not: ${told(example)}`, 'acknowledge first and do the work afterwards')
  }
}
