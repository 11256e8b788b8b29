import { equalText } from '#crypto'
import { crypto } from '../../../internal/realm.ts'
import type { DashboardOptions } from '../options.ts'
import { headed, plain } from './respond.ts'

/**
 * Creates an `authorize` for your own machine, with a random token, as notebooks do. The token is printed on standard
 * output at once, and the first request without it prints the full URL. Opening that URL sets a session cookie. The
 * host must be localhost, 127.0.0.1 or [::1].
 *
 * ```ts
 * const page = dashboard(receiver, { authorize: localOnly() })
 * ```
 */
export function localOnly(): DashboardOptions['authorize'] {
  const token = crypto.randomUUID()
  // The server's address is unknown until the first request.
  console.log(`To open the dashboard, add this to its URL: ?token=${token}`)
  let isPrinted = false
  return tokenRule(token, (url) => {
    if (!isPrinted) console.log(`Open the dashboard: ${url}`)
    isPrinted = true
  })
}

// Against DNS rebinding: another site's name can resolve to this machine.
const localHost = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::(\d+))?$/i

/**
 * Creates an `authorize` that accepts a token in the URL, then in the cookie it sets.
 * @param onMissingToken called with the full URL when a local request has no token
 */
export function tokenRule(token: string, onMissingToken?: (url: string) => void): DashboardOptions['authorize'] {
  return ({ headers, url }) => {
    const { protocol, host: ownHost, pathname, searchParams } = new URL(url)
    const host = headers.get('host') ?? ownHost
    const [isLocal, port = ''] = localHost.exec(host) ?? []
    if (isLocal === undefined) return plain(403, 'The host must be localhost, 127.0.0.1 or [::1].')
    // Browsers send a cookie to every port of a host: name it by port.
    const cookie = `media-webhooks${port}=${token}`
    const cookies = headers.get('cookie')?.split('; ') ?? []
    if (cookies.some((each) => equalText(each, cookie))) return true
    if (equalText(searchParams.get('token') ?? '', token)) {
      searchParams.delete('token')
      // Relative, because a path with two leading slashes would redirect to another host.
      const location = `./${pathname.slice(pathname.lastIndexOf('/') + 1)}${searchParams.size > 0 ? '?' : ''}${searchParams}`
      const setCookie = `${cookie}; Path=/; HttpOnly; SameSite=Strict`
      return new Response(null, { status: 303, headers: headed({ location, 'set-cookie': setCookie }) })
    }
    onMissingToken?.(`${protocol}//${host}${pathname}?token=${token}`)
    return plain(403, 'The token is missing or wrong. Open the URL that the server printed on its standard output.')
  }
}
