import { Elysia } from 'elysia'
import { fetchHandler } from 'media-webhooks/fetch'
import { receiver } from './receiver.ts'

const handler = fetchHandler(receiver)

// Without `parse: 'none'`, Elysia would read the body first.
export const webhooks = new Elysia().all('/webhooks/media', ({ request }) => handler(request), { parse: 'none' })
