import { testTimeoutMs } from '../../../emulator/sending/profile.ts'
import { looksSecret } from '../../shared/mask.ts'
import type { Endpoint } from './endpoint.ts'
import { type Finding, failed, inWords, ok } from './finding.ts'
import { noTls, type Reply } from './probe.ts'

/** `true` if a reply meets the demands of the service's test delivery. */
export const isPrompt = ({ status, durationMs }: Reply): boolean => status === 200 && durationMs <= testTimeoutMs

const check = 'answers exactly 200 within 1 s'

/** Checks the answer to a test delivery. */
export async function acknowledges(endpoint: Endpoint): Promise<{ finding: Finding; reply: Reply }> {
  const reply = await endpoint.deliver(endpoint.newEvent())
  const finding = isPrompt(reply) ? ok(check, inWords(reply)) : failed(check, inWords(reply), fixFor(reply, endpoint))
  return { finding, reply }
}

const acknowledgeFirst = 'acknowledge first and do the work afterwards'

function fixFor({ status, problem }: Reply, endpoint: Endpoint): string {
  if (problem?.startsWith('no answer within')) return acknowledgeFirst
  if (problem === noTls) return 'use http:// in the URL, or a port that speaks https'
  if (status === undefined) return 'is the server running, and is this its address?'
  if (status === 200) return `${acknowledgeFirst}: the service waits 1 s for the answer to a test delivery`
  if (status < 300) return 'answer 200: the test delivery counts no other status as success'
  if (status < 400) return 'register the URL that this one redirects to: the service does not follow redirects'
  if (status === 401 || status === 403) return unauthorizedFix(endpoint)
  if (status === 404 || status === 405) return 'is this the path of the endpoint? It has to accept POST'
  if (status >= 500) return "the endpoint failed, or cannot accept events now: look at the server's log"
  return 'accept what the service sends: a JSON object, as application/json'
}

function unauthorizedFix({ url, scheme }: Endpoint): string {
  if (scheme !== undefined) return `is this the right secret, and does the endpoint verify ${scheme.scheme}?`
  const question = questionAboutUrl(new URL(url))
  const verify = 'say how deliveries are signed: --verify <scheme>, with its secret'
  if (question === undefined) return `put the token into the URL (?token=…), or ${verify}`
  return `${question} If the endpoint expects none there, ${verify}`
}

function questionAboutUrl({ username, search, pathname }: URL): string | undefined {
  if (username !== '') return 'are the user and password in the URL right?'
  const hasToken = search !== '' || looksSecret(pathname.split('/').at(-1) ?? '')
  return hasToken ? 'is the token in the URL right?' : undefined
}

/** Checks that the endpoint still works after the other checks. */
export async function* stillAnswers(endpoint: Endpoint, first: Reply): AsyncIterable<Finding> {
  const check = 'still answers 200 within 1 s after the other checks'
  const reply = await endpoint.deliver(endpoint.newEvent())
  if (isPrompt(reply)) return yield ok(check, inWords(reply))
  const failedBefore = !isPrompt(first) && reply.status === first.status
  const fix = failedBefore
    ? fixFor(reply, endpoint)
    : "one of the deliveries above broke the endpoint: look at the server's log"
  yield failed(check, inWords(reply), fix)
}

const burst = 20

/** Checks that the endpoint accepts a burst of events. */
export async function* takesBurst(endpoint: Endpoint): AsyncIterable<Finding> {
  const check = `answers ${burst} concurrent events with 200 within 1 s each`
  const replies = await Promise.all(Array.from({ length: burst }, () => endpoint.deliver(endpoint.newEvent())))
  const wrong = replies.filter((reply) => !isPrompt(reply))
  const [example] = wrong
  const slowest = Math.round(Math.max(...replies.map(({ durationMs }) => durationMs)))
  if (example === undefined) yield ok(check, `the slowest in ${slowest} ms`)
  else {
    // A failed connection in a burst does not mean that the address is wrong.
    const fix = example.status === undefined ? acknowledgeFirst : fixFor(example, endpoint)
    yield failed(check, `${wrong.length} did not, for example: ${inWords(example)}`, fix)
  }
}
