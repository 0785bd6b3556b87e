// The tables of a frozen graph: adds nodes that fill them with their current contents.
#ifndef RUNNEL_SAVED_MODEL_FREEZE_TABLES_H_
#define RUNNEL_SAVED_MODEL_FREEZE_TABLES_H_

#include "session/session.h"

// The node that fills the tables that |signature| needs, added to the graph of |session| along with
// constants of their contents; NULL if it needs none.
RN_MUST_USE rn_status_t rn_freeze_tables(rn_session_t* session, const rn_signature_t* signature,
                                         rn_node_t** out_fill);

#endif  // RUNNEL_SAVED_MODEL_FREEZE_TABLES_H_
