import { withRefusedHint } from '../../internal/refused.ts'
import { post } from '../../service/emulator/sending/post.ts'
import { deliveryTimeoutMs } from '../../service/emulator/sending/profile.ts'
import { requestTo } from '../../service/emulator/sending/request.ts'
import type { DeliveryFailure } from '../../service/emulator/sending/sending.ts'
import { credentialsIn } from './credentials.ts'
import type { KeptDelivery } from './kept-delivery.ts'
import { secretsIn, withoutSecret } from './mask.ts'
import { type Paint, plain } from './text.ts'

export interface Forwarded {
  readonly durationMs: number
  readonly status?: number | undefined
  /** Response body, with the delivery's secrets masked. */
  readonly answer?: string | undefined
  /** Absent if it was acknowledged. */
  readonly failure?: DeliveryFailure | undefined
}

interface ForwardOptions {
  /** Target URL. Without a query, it gets the delivery's. */
  readonly to: string
  /** Never printed. */
  readonly secret?: string | undefined
  readonly mark?: readonly [name: string, value: string]
  readonly signal: AbortSignal
}

/** Re-sends a delivery once: same body, same end-to-end headers. Never rejects; errors become `failure`. */
export async function forward(
  { url, fields, body }: KeptDelivery,
  { to, secret, mark, signal }: ForwardOptions,
): Promise<Forwarded> {
  const target = new URL(to)
  if (target.search === '') target.search = /\?([^#]*)/.exec(url)?.[1] ?? ''
  const request = await requestTo(target.href, Buffer.from(body).toString())
  const { Authorization } = request.headers
  const headers = {
    ...joinHeaders([...endToEnd(fields), ...(mark === undefined ? [] : [mark])]),
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

/** Hop-by-hop headers, and those the new request sets itself. An encoded response could not be shown. */
const hopByHop =
  /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|host|content-length|expect|accept-encoding)$/i

/** Drops hop-by-hop headers, including those that `Connection` names. */
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

function joinHeaders(fields: KeptDelivery['fields']): Record<string, string> {
  const headers = new Map<string, [name: string, value: string]>()
  for (const [name, value] of fields) {
    const previous = headers.get(name.toLowerCase())
    headers.set(name.toLowerCase(), previous === undefined ? [name, value] : [previous[0], `${previous[1]}, ${value}`])
  }
  return Object.fromEntries(headers.values())
}

/** One line for people. */
export function forwardedText({ durationMs, status, answer = '', failure }: Forwarded, paint: Paint): string {
  const shown = paint(failure === undefined ? 'green' : 'red', `${status ?? '-'}`)
  const why = failure === undefined ? [] : [withRefusedHint(plain(failure.message))]
  return [shown, `${durationMs.toFixed(1)} ms`, ...why, plain(answer.slice(0, 200))].join('  ').trimEnd()
}
