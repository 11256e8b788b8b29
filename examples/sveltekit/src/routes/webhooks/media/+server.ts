import { fetchHandler } from 'media-webhooks/fetch'
import { receiver } from '$lib/server/receiver'
import type { RequestHandler } from './$types'

// A function, so the build needs no secret and opens no file.
const handler = fetchHandler(receiver)

export const POST: RequestHandler = ({ request }) => handler(request)
