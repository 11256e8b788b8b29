import { test } from 'vitest'
import { createReceiver, unverified } from '../../src/index.ts'
import { dashboard, localOnly } from '../../src/operate/dashboard/index.ts'

const receiver = createReceiver({ verify: unverified() })

test('a dashboard needs to know who may see it', () => {
  dashboard(receiver, { authorize: (request) => request.headers.has('cookie') })
  dashboard(receiver, { authorize: localOnly() })
  dashboard(receiver, { authorize: () => 'read' })
  dashboard(receiver, { authorize: async ({ method }) => (method === 'GET' ? 'read' : new Response()) })
  // @ts-expect-error there is no such role
  dashboard(receiver, { authorize: () => 'write' })
  // @ts-expect-error who may see it is missing
  dashboard(receiver)
  // @ts-expect-error who may see it is missing
  dashboard(receiver, { path: '/inbox' })
})
