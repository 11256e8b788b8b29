import { serve } from './app.js'

export default { fetch: serve }
