import type { Logger } from '../../internal/logger.ts'
import type { DashboardOptions } from '../options.ts'
import { plain } from './respond.ts'

/** What a reader may do: only see the pages, or also act. */
export type Role = 'read' | 'act'

/** Decides who may see the page. Returns the answer to a request that it does not admit. */
export type Access = (request: Request) => Promise<Response | Role>

/** Makes the rule for all requests: `authorize` decides, and actions have to come from the page itself. */
export function accessRule({ authorize, origin }: DashboardOptions, logger: Logger): Access {
  return async (request) => {
    try {
      const decision: unknown = await authorize(request)
      if (isResponse(decision)) return decision
      if (decision !== true && decision !== 'read') return plain(403, 'You may not see this page.')
      if (isReading(request)) return decision === 'read' ? 'read' : 'act'
      if (decision === 'read') return plain(403, 'You may read these pages only: an action needs more rights.')
      return isOwn(request, origin) ? 'act' : plain(403, 'Actions have to come from a page of the dashboard itself.')
    } catch (error) {
      logger.error({ err: error }, 'authorize of the dashboard threw')
      return plain(500, 'The dashboard could not decide whether you may see this page. The log says why.')
    }
  }
}

// Another realm's Response, such as a polyfill's, is not an instance of this one's.
const isResponse = (value: unknown): value is Response =>
  value instanceof Response || (typeof value === 'object' && value !== null && 'status' in value && 'headers' in value)

const isReading = ({ method }: Request): boolean => method === 'GET' || method === 'HEAD'

/** Returns true if an action comes from a page of this origin: a page of another site can also send forms. */
function isOwn({ headers, url }: Request, expected: string | undefined): boolean {
  const site = headers.get('sec-fetch-site')
  const origin = headers.get('origin') ?? ''
  const isHost = () => hostOf(origin) === (headers.get('host') ?? new URL(url).host)
  if (expected !== undefined) return origin === expected
  return site === null ? isHost() : site === 'same-origin'
}

function hostOf(origin: string): string | undefined {
  try {
    return new URL(origin).host
  } catch {
    return undefined
  }
}
