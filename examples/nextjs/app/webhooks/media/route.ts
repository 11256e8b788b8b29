import { fetchHandler } from 'media-webhooks/fetch'
import { after } from 'next/server'
import { receiver } from '../../../lib/receiver'

// The function is called at the first delivery, so that `next build` needs no secret and opens no file.
export const POST = fetchHandler(() => receiver(), { waitUntil: after })
