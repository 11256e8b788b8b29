import { serve } from './app.js'

const { port } = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: (request) => serve(request) })
console.log(`listening on ${port}`)
