/**
 * Finds the name of a route in the path of a request: `events` in `/admin/inbox/events`, if the page is at
 * `/admin/inbox`. Frameworks and proxies may have removed the beginning of the path.
 */
export function routeOf(pathname: string, path: string): string {
  const segments = path.split('/').slice(1)
  for (let removed = 0; removed <= segments.length; removed++) {
    const beginning = segments.slice(removed).map((segment) => `/${segment}`)
    const prefix = beginning.join('')
    if (pathname === prefix || pathname.startsWith(`${prefix}/`)) return pathname.slice(prefix.length + 1)
  }
  return pathname
}
