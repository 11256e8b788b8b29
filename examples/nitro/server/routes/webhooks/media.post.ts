import { nodeHandler } from 'media-webhooks/node'

export default defineEventHandler(({ node }) => nodeHandler(mediaReceiver())(node.req, node.res))
