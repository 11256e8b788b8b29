import type { IncomingHttpHeaders, RequestListener } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { finish } from './program.ts'

/** A finding, as `doctor --json` prints it. */
export interface Finding {
  readonly check: string
  readonly verdict: string
  readonly reason: string
  readonly fix?: string
}

/** Runs `doctor --json` on an endpoint. */
export async function examine(url: string, ...flags: string[]) {
  const { code, output, errors } = await finish(['doctor', url, ...flags, '--json'])
  const report: { ok: boolean; requests: number; findings: Finding[] } = JSON.parse(output || '{}')
  const failed = report.findings.filter(({ verdict }) => verdict === 'failed')
  return { code, errors, output, ...report, failed: failed.map(({ check }) => check) }
}

/** The parts of a request that a hand-written receiver reads. */
export interface Request {
  readonly method: string
  readonly type: string | undefined
  readonly url: string
  readonly text: string
  readonly headers: IncomingHttpHeaders
}

/** An answer: its status, or its status and its body. */
type Answer = number | readonly [status: number, body: string]

/** A receiver that rejects what it should and accepts the rest, unless `answer` differs. */
export function handWritten(
  answer: (request: Request, rejection: number | undefined) => Promise<Answer> | Answer,
  isAuthorized: (request: Request) => boolean = ({ url }) => url.includes('token=s3cret'),
): RequestListener {
  return async (request, response) => {
    const body = await buffer(request)
    const { method = '', url = '', headers } = request
    const seen = { method, type: headers['content-type'], url, text: body.toString(), headers }
    const answered = await answer(seen, rejectionOf(seen, body, isAuthorized(seen)))
    const [status, text] = typeof answered === 'number' ? [answered, ''] : answered
    response.writeHead(status, status >= 300 && status < 400 ? { location: '/elsewhere?token=s3cret' } : {}).end(text)
  }
}

function rejectionOf({ method, type, text }: Request, body: Buffer, authorized: boolean): number | undefined {
  if (method !== 'POST') return 405
  if (type !== 'application/json') return 415
  if (body.length > 65_536) return 413
  if (!authorized) return 401
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(body)
    return typeof JSON.parse(text).media_id === 'string' ? undefined : 400
  } catch {
    return 400
  }
}

/** Accepts what should not be rejected. */
export const accepted = (_: Request, rejection = 200) => rejection
