import { testTimeoutMs } from '../../../emulator/sending/profile.ts'
import { looksSecret } from '../../shared/mask.ts'
import type { Endpoint } from './endpoint.ts'
import { type Finding, failed, inWords, isUnauthorized, ok, wasAccepted } from './finding.ts'
import { noTls, type Reply } from './probe.ts'

/** `true` if a reply acknowledges an event, with any 2xx, in the time that a test delivery is given. */
export const isPrompt = (reply: Reply): boolean => wasAccepted(reply) && reply.durationMs <= testTimeoutMs

const check = 'answers exactly 200 within 1 s'

/** Checks the answer to a test delivery. */
export async function acknowledges(endpoint: Endpoint): Promise<{ finding: Finding; reply: Reply }> {
  const reply = await endpoint.deliver(endpoint.newEvent())
  const isRight = reply.status === 200 && isPrompt(reply)
  const finding = isRight ? ok(check, inWords(reply)) : failed(check, inWords(reply), fixFor(reply, endpoint))
  return { finding, reply }
}

const bodyConsumedFix =
  'a body parser reads the body before the receiver, whose log line names the fix. Express: mount the receiver before express.json(). NestJS: NestFactory.create(AppModule, { rawBody: true }). Next.js pages router: export const config = { api: { bodyParser: false } }. Fastify, Koa: use the adapter of media-webhooks. Hono: await c.req.text() in place of c.req.raw. Any other Request: read request.clone()'

const acknowledgeFirst = 'acknowledge first and do the work afterwards'

/** The codes of errors for a certificate that no known authority signed. */
const untrusted = /SELF_SIGNED_CERT|UNABLE_TO_VERIFY_LEAF|UNABLE_TO_GET_ISSUER/

const certificateFix =
  'this machine does not trust the certificate. If it is self-signed, run the command with NODE_EXTRA_CA_CERTS=<the PEM file of the certificate, or of the authority that signed it>'

function fixFor({ status, outcome, problem, durationMs }: Reply, endpoint: Endpoint): string {
  const isSlow = durationMs > testTimeoutMs
  if (problem?.startsWith('no answer within')) return acknowledgeFirst
  if (problem === noTls) return 'use http:// in the URL, or a port that speaks https'
  if (problem !== undefined && untrusted.test(problem)) return certificateFix
  if (status === undefined) return 'is the server running, and is this its address?'
  if (status < 300 && isSlow) return `${acknowledgeFirst}: the service waits 1 s for the answer to a test delivery`
  if (status < 300)
    return 'answer 200: the test delivery counts no other status as success. Other events may get any 2xx'
  if (status < 400) return 'register the URL that this one redirects to: the service does not follow redirects'
  if (status === 401 || status === 403) return unauthorizedFix(endpoint)
  if (status === 404 || status === 405) return 'is this the path of the endpoint? It has to accept POST'
  if (outcome === 'body_consumed') return bodyConsumedFix
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

const signsOwnBytes =
  'compute the signature over the bytes as they arrive, before any JSON parser: JSON that is parsed and written again has other bytes'

/** Checks that a genuine delivery is verified by the bytes that the service writes: it escapes more than others do. */
export async function* acknowledgesEscapes(endpoint: Endpoint): AsyncIterable<Finding> {
  const check = 'acknowledges a title with &, < and >, which the service writes as \\u0026, \\u003c and \\u003e'
  const reply = await endpoint.deliver(endpoint.newEvent('encoding.started', 'Q&A <Test>.mp4'))
  const isSigned = endpoint.scheme?.scheme === 'hmac-signature' || endpoint.scheme?.scheme === 'standard-webhooks'
  if (isPrompt(reply)) yield ok(check, inWords(reply))
  else yield failed(check, inWords(reply), isSigned && isUnauthorized(reply) ? signsOwnBytes : fixFor(reply, endpoint))
}

/** Checks that the endpoint still works after the other checks. */
export async function* stillAnswers(endpoint: Endpoint, first: Reply): AsyncIterable<Finding> {
  const check = 'still acknowledges an event within 1 s after the other checks'
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
  const check = `acknowledges ${burst} concurrent events within 1 s each`
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
