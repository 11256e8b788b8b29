import { testTimeoutMs } from '../../../emulator/sending/profile.ts'
import { looksSecret } from '../../shared/mask.ts'
import type { Endpoint } from './endpoint.ts'
import { type Finding, failed, ok, told } from './finding.ts'
import { noTls, type Reply } from './probe.ts'

/** What the service's test delivery asks for. */
export const isPrompt = ({ status, durationMs }: Reply): boolean => status === 200 && durationMs <= testTimeoutMs

const check = 'answers exactly 200 within 1 s'

/** Makes a test delivery. */
export async function acknowledges(endpoint: Endpoint): Promise<{ finding: Finding; reply: Reply }> {
  const reply = await endpoint.deliver(endpoint.newEvent())
  const finding = isPrompt(reply) ? ok(check, told(reply)) : failed(check, told(reply), fixFor(reply, endpoint))
  return { finding, reply }
}

function fixFor({ status, problem }: Reply, endpoint: Endpoint): string {
  if (problem?.startsWith('no answer within')) return 'acknowledge first and do the work afterwards'
  if (problem === noTls) return 'give the URL with http://, or a port that speaks https'
  if (status === undefined) return 'is the server running, and is this its address?'
  if (status === 200) return 'acknowledge first and do the work afterwards: the test delivery is given 1 s'
  if (status < 300) return 'answer 200: the test delivery counts no other status as success'
  if (status < 400) return 'register the URL that it leads to: the service follows no redirect'
  if (status === 401 || status === 403) return unauthorizedFix(endpoint)
  if (status === 404 || status === 405) return 'is this the path of the endpoint? It has to take POST'
  if (status >= 500) return "the endpoint broke or cannot take events now: look at the server's log"
  return 'the endpoint rejects what the service sends: a JSON object, as application/json'
}

function unauthorizedFix({ url, scheme }: Endpoint): string {
  if (scheme !== undefined) return `is it this secret, and is ${scheme.scheme} what the endpoint verifies?`
  const held = credentialIn(new URL(url))
  const verify = 'say how deliveries are signed: --verify <scheme>, with its secret'
  if (held === undefined) return `put the token into the URL (?token=…), or ${verify}`
  return `is the ${held} in the URL the endpoint's? If it takes none there, ${verify}`
}

function credentialIn({ username, search, pathname }: URL): string | undefined {
  if (username !== '') return 'user and password'
  return search !== '' || looksSecret(pathname.split('/').at(-1) ?? '') ? 'token' : undefined
}

/** Whether it stands after all that was tried. */
export async function* stillAnswers(endpoint: Endpoint, first: Reply): AsyncIterable<Finding> {
  const check = 'still answers 200 within 1 s after all that'
  const reply = await endpoint.deliver(endpoint.newEvent())
  if (isPrompt(reply)) return yield ok(check, told(reply))
  const wasSo = !isPrompt(first) && reply.status === first.status
  const fix = wasSo ? fixFor(reply, endpoint) : "one of the deliveries above broke it: look at the server's log"
  yield failed(check, told(reply), fix)
}

const burst = 20

/** Whether a burst of events is taken. */
export async function* takesBurst(endpoint: Endpoint): AsyncIterable<Finding> {
  const check = `answers ${burst} events at once, each 200 within 1 s`
  const replies = await Promise.all(Array.from({ length: burst }, () => endpoint.deliver(endpoint.newEvent())))
  const wrong = replies.filter((reply) => !isPrompt(reply))
  const [example] = wrong
  const slowest = Math.round(Math.max(...replies.map(({ durationMs }) => durationMs)))
  if (example === undefined) yield ok(check, `the slowest in ${slowest} ms`)
  else {
    // That a connection is rejected to many says nothing of the address.
    const fix =
      example.status === undefined ? 'acknowledge first and do the work afterwards' : fixFor(example, endpoint)
    yield failed(check, `${wrong.length} were not: ${told(example)}`, fix)
  }
}
