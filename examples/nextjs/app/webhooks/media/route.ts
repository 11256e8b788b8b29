import { fetchHandler } from 'media-webhooks/fetch'
import { after } from 'next/server'
import { receiver } from '../../../lib/receiver'

// Runs at the first delivery, so `next build` needs no secret and opens no file.
export const POST = fetchHandler(() => receiver(), { waitUntil: after })
