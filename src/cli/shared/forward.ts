import { post } from '../../emulator/sending/post.ts'
import { deliveryTimeoutMs } from '../../emulator/sending/profile.ts'
import { requestTo } from '../../emulator/sending/request.ts'
import type { DeliveryFailure } from '../../emulator/sending/sending.ts'
import { withRefusedHint } from '../../internal/refused.ts'
import { credentialsIn } from './credentials.ts'
import type { KeptDelivery } from './kept-delivery.ts'
import { secretsIn, withoutSecret } from './mask.ts'
import { type Paint, plain } from './text.ts'

/** The answer of a server to a delivery that was forwarded to it. */
export interface Forwarded {
  readonly durationMs: number
  readonly status?: number | undefined
  /** The body of the answer. Secrets of the delivery are masked. */
  readonly answer?: string | undefined
  /** Absent if the delivery was acknowledged. */
  readonly failure?: DeliveryFailure | undefined
}

interface ForwardOptions {
  /** The URL of the server. Without a query of its own, it gets the delivery's. */
  readonly to: string
  /** A secret that must not be printed. */
  readonly secret?: string | undefined
  /** A header field to add. */
  readonly mark?: readonly [name: string, value: string]
  readonly signal: AbortSignal
}

/**
 * Makes a delivery again, once, with the same body and the header fields that are not of its connection. It never
 * rejects: an error becomes the failure. The time limit is the service's.
 */
export async function forward(
  { url, fields, body }: KeptDelivery,
  { to, secret, mark, signal }: ForwardOptions,
): Promise<Forwarded> {
  const target = new URL(to)
  if (target.search === '') target.search = /\?([^#]*)/.exec(url)?.[1] ?? ''
  const request = await requestTo(target.href, Buffer.from(body).toString())
  const { Authorization } = request.headers
  const headers = {
    ...headersOf([...endToEnd(fields), ...(mark === undefined ? [] : [mark])]),
    ...(Authorization !== undefined && { Authorization }),
  }
  const posted = await post({ ...request, headers }, { timeoutMs: deliveryTimeoutMs, signal })
  const failure = signal.aborted && posted.failure ? { ...posted.failure, message: 'interrupted' } : posted.failure
  const secrets = [secret, ...secretsIn(to), ...secretsIn(url), ...credentialsIn({ fields })]
  return {
    durationMs: posted.durationMs,
    status: posted.answer?.status,
    answer: posted.answer && withoutSecret(posted.answer.body, ...secrets),
    failure,
  }
}

/** Fields that belong to one connection, or that a request gets anew. An answer in another encoding could not be shown. */
const hopByHop =
  /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|host|content-length|expect|accept-encoding)$/i

/** Leaves out the fields of the connection, and those that its field Connection names. */
function endToEnd(fields: KeptDelivery['fields']): KeptDelivery['fields'] {
  const named = fields
    .filter(([name]) => name.toLowerCase() === 'connection')
    .flatMap(([, value]) =>
      value
        .toLowerCase()
        .split(',')
        .map((each) => each.trim()),
    )
  return fields.filter(([name]) => !hopByHop.test(name) && !named.includes(name.toLowerCase()))
}

/** Joins the values of fields that are repeated. */
function headersOf(fields: KeptDelivery['fields']): Record<string, string> {
  const headers = new Map<string, [name: string, value: string]>()
  for (const [name, value] of fields) {
    const previous = headers.get(name.toLowerCase())
    headers.set(name.toLowerCase(), previous === undefined ? [name, value] : [previous[0], `${previous[1]}, ${value}`])
  }
  return Object.fromEntries(headers.values())
}

/** Formats an answer for people, on one line. */
export function forwardedText({ durationMs, status, answer = '', failure }: Forwarded, paint: Paint): string {
  const shown = paint(failure === undefined ? 'green' : 'red', `${status ?? '-'}`)
  const why = failure === undefined ? [] : [withRefusedHint(plain(failure.message))]
  return [shown, `${durationMs.toFixed(1)} ms`, ...why, plain(answer.slice(0, 200))].join('  ').trimEnd()
}
