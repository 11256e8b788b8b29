import type { Handler, Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { type ApiEnv, fullAccessOnly } from './identity.ts'

export type Routes = Readonly<
  Record<string, Readonly<Partial<Record<'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', Handler<ApiEnv>>>>>
>

/** Mounts endpoints. Adds OPTIONS to each path, and 405 for any other method. */
export function mount(api: Hono<ApiEnv>, routes: Routes): void {
  for (const [path, handlers] of Object.entries(routes)) {
    const methods = Object.keys(handlers)
    const allow = methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
    for (const [method, handler] of Object.entries(handlers)) api.on(method, path, fullAccessOnly, handler)
    api.all(path, (context) => {
      context.header('Allow', `${allow}, OPTIONS`)
      if (context.req.method === 'OPTIONS') return context.body(null, 204)
      throw new HTTPException(405, { message: `${context.req.method} is not one of its methods: ${allow}` })
    })
  }
}
