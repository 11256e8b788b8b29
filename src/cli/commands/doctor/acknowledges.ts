import { testTimeoutMs } from '../../../service/emulator/sending/profile.ts'
import { looksSecret } from '../../shared/mask.ts'
import { signsBody } from '../../shared/schemes.ts'
import type { Endpoint } from './endpoint.ts'
import { type Finding, failed, inWords, isUnauthorized, ok, wasAccepted } from './finding.ts'
import { noTls, type Reply } from './probe.ts'

/** Judges the reply to an event: any 2xx acknowledges it, after 1 s with a warning. */
export function judgeAcknowledgement(check: string, reply: Reply, fix: string): Finding {
  if (!wasAccepted(reply)) return failed(check, inWords(reply), fix)
  return isSlow(reply) ? slow(check, inWords(reply)) : ok(check, inWords(reply))
}

const isSlow = ({ durationMs }: Reply): boolean => durationMs > testTimeoutMs

const slow = (check: string, reason: string): Finding => ({ check, verdict: 'warning', reason, fix: acknowledgeSoon })

export async function acknowledges(endpoint: Endpoint): Promise<{ finding: Finding; reply: Reply }> {
  const isSample = endpoint.sample !== undefined
  const check = isSample ? 'acknowledges the sample within 1 s' : 'answers exactly 200 within 1 s'
  const reply = await endpoint.deliver(endpoint.newEvent())
  const fix = fixFor(reply, endpoint)
  // Other 2xx acknowledge events, but not the test delivery.
  const isOther = !isSample && wasAccepted(reply) && reply.status !== 200
  return { finding: isOther ? failed(check, inWords(reply), fix) : judgeAcknowledgement(check, reply, fix), reply }
}

const bodyConsumedFix =
  'a body parser reads the body before the receiver, whose log line names the fix. Express: mount the receiver before express.json(). NestJS: NestFactory.create(AppModule, { rawBody: true }). Next.js pages router: export const config = { api: { bodyParser: false } }. Fastify, Koa: use the adapter of media-webhooks. Hono: await c.req.text() in place of c.req.raw. Any other Request: read request.clone()'

const acknowledgeFirst = 'acknowledge first and do the work afterwards'
const acknowledgeSoon = `${acknowledgeFirst}: the service waits 3 s for an answer, and 1 s when it sends a test delivery`

const untrusted = /SELF_SIGNED_CERT|UNABLE_TO_VERIFY_LEAF|UNABLE_TO_GET_ISSUER/

const certificateFix =
  'this machine does not trust the certificate. If it is self-signed, set NODE_EXTRA_CA_CERTS to the PEM file of the certificate or its CA'

function fixFor({ status, outcome, problem }: Reply, endpoint: Endpoint): string {
  if (problem?.startsWith('no answer within')) return acknowledgeFirst
  if (problem === noTls) return 'use http:// in the URL, or the port that speaks https'
  if (problem !== undefined && untrusted.test(problem)) return certificateFix
  if (status === undefined) return 'is the server running, and is this its address?'
  if (status < 300)
    return 'answer 200: for the test delivery, no other status counts as success. Other events may get any 2xx'
  if (status < 400) return 'register the URL that this one redirects to: the service does not follow redirects'
  if (status === 401 || status === 403) return unauthorizedFix(endpoint)
  if (status === 404 || status === 405) return 'is this the path of the endpoint? It must accept POST'
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
  'verify the signature over the raw bytes, before any JSON parser: parsing and serialising changes them'

/** Checks that signatures are verified over the raw bytes. The service escapes more characters than other senders. */
export async function* acknowledgesEscapes(endpoint: Endpoint): AsyncIterable<Finding> {
  if (endpoint.sample !== undefined) return
  const check = 'acknowledges a title with &, < and >, which the service writes as \\u0026, \\u003c and \\u003e'
  const reply = await endpoint.deliver(endpoint.newEvent('encoding.started', 'Q&A <Test>.mp4'))
  const isSigned = endpoint.scheme !== undefined && signsBody(endpoint.scheme)
  const fix = isSigned && isUnauthorized(reply) ? signsOwnBytes : fixFor(reply, endpoint)
  yield judgeAcknowledgement(check, reply, fix)
}

/** Checks that the earlier checks broke nothing. */
export async function* stillAnswers(endpoint: Endpoint): AsyncIterable<Finding> {
  const check = 'still acknowledges an event within 1 s after the other checks'
  const reply = await endpoint.deliver(endpoint.newEvent())
  const fix = "one of the deliveries above broke the endpoint: look at the server's log"
  yield judgeAcknowledgement(check, reply, fix)
}

const burst = 20

export async function* takesBurst(endpoint: Endpoint): AsyncIterable<Finding> {
  const events = endpoint.sample === undefined ? 'events' : 'duplicates'
  const check = `acknowledges ${burst} concurrent ${events} within 1 s each`
  const replies = await Promise.all(Array.from({ length: burst }, () => endpoint.deliver(endpoint.newEvent())))
  const wrong = replies.filter((reply) => !wasAccepted(reply))
  const [example] = wrong
  if (example !== undefined) {
    // Under load a failed connection is no sign of a wrong address.
    const fix = example.status === undefined ? acknowledgeFirst : fixFor(example, endpoint)
    return yield failed(check, `${wrong.length} were not acknowledged, for example: ${inWords(example)}`, fix)
  }
  const late = replies.filter(isSlow).length
  const slowest = `the slowest in ${Math.round(Math.max(...replies.map(({ durationMs }) => durationMs)))} ms`
  yield late > 0 ? slow(check, `${late} took longer, ${slowest}`) : ok(check, slowest)
}
