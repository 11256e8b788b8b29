/**
 * Extracts the route from a request path: `events` from `/admin/inbox/events` if mounted at `/admin/inbox`. Frameworks
 * and proxies may already have stripped part of the mount path.
 */
export function findRoute(pathname: string, path: string): string {
  const segments = path.split('/').slice(1)
  for (let removed = 0; removed <= segments.length; removed++) {
    const beginning = segments.slice(removed).map((segment) => `/${segment}`)
    const prefix = beginning.join('')
    if (pathname === prefix || pathname.startsWith(`${prefix}/`)) return pathname.slice(prefix.length + 1)
  }
  return pathname
}
