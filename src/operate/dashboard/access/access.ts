import { WebhookError } from '../../../errors.ts'
import type { Logger } from '../../../internal/logger.ts'
import { within } from '../../../internal/timers.ts'
import type { DashboardOptions } from '../options.ts'
import { plain } from './respond.ts'

export interface Reader {
  readonly mayAct: boolean
  readonly user?: string
}

/** Returns the reader, or the response that denies access. */
export type Access = (request: Request) => Promise<Response | Reader>

/** Time limit for `authorize` (ms). */
const authorizeTimeoutMs = 10_000

/** Wraps `authorize`, and rejects actions from other origins (CSRF). */
export function accessRule({ authorize, origin }: DashboardOptions, logger: Logger): Access {
  return async (request) => {
    try {
      const decision: unknown = await within(authorizeTimeoutMs, Promise.resolve(authorize(request)), timedOut)
      if (isResponse(decision)) return decision
      const reader = readDecision(decision)
      if (reader === undefined) return plain(403, 'You may not see this page.')
      if (isGet(request)) return reader
      if (!reader.mayAct) return plain(403, 'You have read access only: actions need more rights.')
      return isSameOrigin(request, origin)
        ? reader
        : plain(403, 'Actions must come from a page of the dashboard itself.')
    } catch (error) {
      logger.error({ err: error }, 'authorize, an option of the dashboard, failed')
      return plain(500, 'The access check failed. The server log says why.')
    }
  }
}

function timedOut(): never {
  throw new WebhookError(
    'timeout',
    `authorize did not settle within ${authorizeTimeoutMs} ms: set a timeout on what it calls`,
  )
}

function readDecision(decision: unknown): Reader | undefined {
  if (decision === true || decision === 'read') return { mayAct: decision === true }
  const { user } = (decision ?? {}) as { readonly user?: unknown }
  return typeof user === 'string' && user !== '' ? { mayAct: true, user } : undefined
}

// A Response from a polyfill or another realm fails `instanceof`.
const isResponse = (value: unknown): value is Response =>
  value instanceof Response || (typeof value === 'object' && value !== null && 'status' in value && 'headers' in value)

const isGet = ({ method }: Request): boolean => method === 'GET' || method === 'HEAD'

/** CSRF check. Other sites can post forms here too. */
function isSameOrigin({ headers, url }: Request, expected: string | undefined): boolean {
  const site = headers.get('sec-fetch-site')
  const origin = headers.get('origin') ?? ''
  const isHost = () => parseHost(origin) === (headers.get('host') ?? new URL(url).host)
  if (expected !== undefined) return origin === expected
  return site === null ? isHost() : site === 'same-origin'
}

function parseHost(origin: string): string | undefined {
  try {
    return new URL(origin).host
  } catch {
    return undefined
  }
}
