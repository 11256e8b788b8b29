import { WebhookError } from '../../errors.ts'
import { checkedApart, checkOptions } from '../../internal/check-options.ts'

/** A person who may see the pages and act. Each action is logged under this name. */
export interface Operator {
  readonly user: string
}

type Decision = boolean | 'read' | Operator | Response

/** The options of `dashboard`. */
export interface DashboardOptions {
  /**
   * The path as browsers see it, such as `/inbox`. All links start with it.
   * @defaultValue '/'
   */
  readonly path?: string
  /**
   * Decides who may see and operate the inbox. Called on every request. `true` grants full access. `{ user }` does too,
   * and logs each action under that name. `'read'` grants read access: no action buttons, 403 for actions. `false`
   * answers 403. A `Response`, such as a redirect to a sign-in page, is sent as is. An error, or no result within 10 s,
   * answers 500. On your own machine, use `localOnly()`.
   */
  readonly authorize: (request: Request) => Decision | Promise<Decision>
  /**
   * The origin as browsers see it, such as `https://ops.example.com`. Actions from other origins answer 403.
   * @defaultValue the host of the request
   */
  readonly origin?: string
  /**
   * Hides payload data. `true` hides payloads, titles and the bytes of unreadable deliveries. A function gets a copy of
   * the payload and returns what to show. If it throws, the payload is hidden. Error messages of handlers are always
   * shown.
   * @defaultValue everything is shown
   */
  readonly redact?: true | ((payload: Record<string, unknown>) => Record<string, unknown>)
}

/** The members of Node's request that {@link Dashboard.node} uses. Express and others have them too. */
export interface NodeRequest extends AsyncIterable<Uint8Array> {
  readonly method?: string | undefined
  readonly url?: string | undefined
  /** The full URL, where a router strips its prefix from `url`. */
  readonly originalUrl?: string | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly socket: object
  readonly body?: unknown
  readonly readableDidRead?: boolean | undefined
}

/** The members of Node's response that {@link Dashboard.node} uses. */
export interface NodeResponse {
  readonly headersSent: boolean
  readonly destroyed?: boolean | undefined
  writeHead(status: number, headers: Record<string, string | string[]>): unknown
  write(part: Uint8Array): boolean
  end(body?: Uint8Array): unknown
  once(event: 'drain' | 'close', listener: () => void): unknown
  destroy(): unknown
}

/** A dashboard, to mount in a server. */
export interface Dashboard {
  /** Handles a web `Request`: Hono, Next.js, Bun, Deno. */
  fetch(this: void, request: Request): Promise<Response>
  /** Handles a Node request: `node:http`, Express, Koa, Fastify. */
  node(this: void, request: NodeRequest, response: NodeResponse): Promise<void>
}

/**
 * Checks the options and fills in defaults.
 * @throws WebhookError `invalid_option`
 */
export function checkDashboardOptions(options: DashboardOptions): DashboardOptions & { readonly path: string } {
  const rules = { path: checkedApart, authorize: checkedApart, origin: checkedApart, redact: checkedApart }
  checkOptions<DashboardOptions>('dashboard', options, rules)
  const { path = '/', authorize, origin, redact } = options ?? {}
  if (typeof path !== 'string' || !/^(\/[\w.~!$&'()*+,;=:@%-]+)*\/?$/.test(path) || path === '')
    throw invalid("path must start with a slash, such as '/inbox'")
  if (typeof authorize !== 'function')
    throw invalid(
      "give authorize, a function that returns true, { user }, 'read', false or a Response, or localOnly() on your own machine",
    )
  if (origin !== undefined && !(URL.canParse(origin) && new URL(origin).origin === origin))
    throw invalid("origin must be a scheme and a host, such as 'https://ops.example.com'")
  if (redact !== undefined && redact !== true && typeof redact !== 'function')
    throw invalid('redact must be true or a function that returns the payload to show')
  return {
    path: path.replace(/\/$/, ''),
    authorize: authorize.bind(options),
    ...(origin && { origin }),
    ...(redact && { redact }),
  }
}

const invalid = (message: string): WebhookError => new WebhookError('invalid_option', `dashboard: ${message}`)
